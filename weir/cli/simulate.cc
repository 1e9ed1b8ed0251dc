#include "weir/cli/simulate.h"

#include "weir/cli/commands.h"

namespace weir::cli {
namespace {

Exit run_simulate(const Arguments& arguments, Console& console) {
  const bool traces = !arguments["--trace"].empty();
  const bool generates = !arguments["--generate"].empty();
  const bool has_logs = !arguments.all("LOG").empty();
  if (traces + generates + has_logs != 1) {
    console.print_error("give access logs, --trace FILE or --generate N, and only one of them");
    return kUsage;
  }
  if (generates) return generate_log(arguments, console);
  if (arguments["--config"].empty()) {
    console.print_error("missing --config (the configuration)");
    return kUsage;
  }
  return traces ? replay_trace(arguments, console) : replay_logs(arguments, console);
}

}  // namespace

Command simulate() {
  return {
      "simulate",
      "replay real traffic against a configuration",
      "Replays access logs and reports what the configuration would have done: what each limit and\n"
      "route would have allowed and denied, who would have been hit and when, and the smallest burst\n"
      "and rate that would have denied no one. It starts no server and keeps nothing.\n"
      "\n"
      "Formats: nginx and Apache (combined, common), Envoy's default, HAProxy's httplog, JSON lines,\n"
      "and Weir's own access log, also gzipped. It names what a log lacks, and does not guess.\n"
      "\n"
      "With --trace it replays JSON lines, each with its own time, and prints one exact decision per\n"
      "line. A line asks for one limit or for several at once:\n"
      "  {\"t\": 0.005, \"limit\": \"per-ip\", \"id\": \"203.0.113.9\", \"cost\": 1, \"op\": \"spend\"}\n"
      "  {\"t\": 0.005, \"charges\": [{\"limit\": \"a\", \"id\": \"x\"}, …], \"charge\": \"together\"}\n"
      "t is in seconds since 1970 in UTC, with up to nine decimals; cost defaults to 1; op is spend,\n"
      "peek, refund or reset; charge is together or in-order. Lines are taken in the order given.\n"
      "The answer, for several charges that of the strictest:\n"
      "  {\"t\",\"limit\",\"id\",\"allowed\",\"remaining\",\"retry_after\",\"reset_after\",\"tat\"}\n"
      "-1 is never; remaining -1 is unlimited. A line that\n"
      "cannot be replayed is answered by {\"t\",\"error\"}, and the exit status is 1.",
      {config_option("the configuration", false, false),
       {"LOG", "LOG", "an access log, also gzipped; - is standard input", false, {}, true},
       {"--format", "FORMAT", "log format", false, {"auto", "combined", "envoy", "haproxy", "json"}},
       {"--field", "FIELD=NAME", "field of a JSON log: header:x-tenant-id=tenant; may be repeated", false, {}, true},
       {"--zone", "ZONE", "time zone of times without an offset, such as Europe/London (default UTC)"},
       {"--window", "TIME", "how late a line may be (default 60s)"},
       {"--spread", "HOW", "how to spread lines of equal time over the log's resolution", false, {"even", "none"}},
       {"--clients", "N", "clients to keep apart, which bounds the memory (default 1M)"},
       {"--deny-at-most", "PERCENT", "share of requests that the advised numbers may deny (default 0)"},
       {"--top", "N", "denied clients to list per limit (default 20)"},
       {"--compare", "FILE", "also replay this configuration, and show what differs"},
       {"--output", "FORMAT", "report format", false, {"table", "json", "csv", "html"}},
       {"--generate", "N", "write a sample log of N lines in --format"},
       {"--seed", "N", "seed of --generate (default 1)"},
       {"--trace", "FILE", "an exact history, one JSON object per line; - is standard input"},
       set_option()},
      "# What would this configuration have done yesterday?\n"
      "weir simulate --config weir.yaml access.log.1 access.log.2.gz\n"
      "# The same as a page with plots:\n"
      "weir simulate --config weir.yaml access.log --output html > report.html\n"
      "# Which clients would a new configuration newly deny?\n"
      "weir simulate --config weir.yaml --compare new.yaml access.log\n"
      "# Would this burst have passed?\n"
      "weir simulate --config weir.yaml --trace burst.jsonl\n"
      "# One question, on the command line:\n"
      "echo '{\"t\":0,\"limit\":\"a\",\"id\":\"x\"}' | weir simulate -c weir.yaml --trace -",
      run_simulate};
}

}  // namespace weir::cli
