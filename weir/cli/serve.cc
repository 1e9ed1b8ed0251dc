// `weir serve`: reads the configuration and runs the server that app/ passes in.
#include <variant>

#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"

namespace weir::cli {
namespace {

Exit run_serve(const Arguments& arguments, Console& console) {
  const std::string& path = arguments["--config"];
  const Result<Flags> flags = read_flags(arguments);
  if (!flags) {
    console.print_error(flags.error().detail);
    return kUsage;
  }
  ServerStart start{{}, {}, path, *flags, std::make_shared<JwtCounts>()};
  config::Options options;
  options.flags = *flags;
  options.jwt_counts = start.jwt_counts;
  // Note the version before reading, so that a change in between is noticed.
  options.reading = [&start](const std::string& name) { start.files.push_back({name, FileVersion::at(name)}); };
  auto outcome = check_to_serve(path, std::move(options));
  if (const auto* const problems = std::get_if<config::Problems>(&outcome)) {
    print_error(*problems, path, console);
    return kUsage;
  }
  start.checked = std::move(std::get<config::Checked>(outcome));
  return console.run_server(std::move(start), console);
}

}  // namespace

Command serve() {
  return {
      "serve",
      "run the server: HTTP, gRPC, RESP, edge proxy, admin API",
      "By default it listens on 127.0.0.1:8080 (HTTP and gRPC), 127.0.0.1:6380 (any Redis client) and\n"
      "127.0.0.1:9090 (dashboard, admin API, metrics, probes). A configuration with a backend, and a listener with\n"
      "speak: proxy, make it a reverse proxy. SIGTERM drains and exits; SIGHUP reads the configuration again.",
      {config_option("the configuration; without it the environment (WEIR_...) and the defaults", false), set_option()},
      "# no file: each address gets 100 requests per second, 20 at once\n"
      "weir serve\n"
      "# your own limits\n"
      "weir serve --config weir.yaml\n"
      "# override the file and the environment\n"
      "weir serve weir.yaml --set log.level=debug --set listen[0].address=:8081",
      run_serve};
}

}  // namespace weir::cli
