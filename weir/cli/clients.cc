// `weir clients`: a page of the active buckets, or all of them.
#include <string>

#include "weir/base/bounds.h"
#include "weir/base/printable.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/client_arguments.h"
#include "weir/cli/client_rows.h"
#include "weir/cli/commands.h"
#include "weir/cli/progress.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"

namespace weir::cli {
namespace {

// The path of one page.
std::string page_path(const Arguments& arguments, const std::string& cursor) {
  const bool all = arguments.has("--all");
  std::string path = "/ratelimit/clients?n=";
  const std::string& number = arguments["--number"];
  path += !number.empty() ? number : all ? std::to_string(bounds::admin_page_max) : "100";
  for (const std::string_view option : {"--limit", "--sort", "--prefix"}) {
    const std::string& value = arguments[option];
    if (!value.empty()) path.append("&").append(option.substr(2)).append("=").append(escaped_part(value));
  }
  if (!cursor.empty()) path += "&cursor=" + escaped_part(cursor);
  return path;
}

// Prints one page after the other. JSON of several pages becomes one document.
class ClientPages {
 public:
  ClientPages(const Arguments& arguments, Console& console)
      : console_(console),
        format_(arguments["--output"]),
        all_(arguments.has("--all")),
        table_(format_ == "csv" ? client_fields_table() : client_table()) {}

  void print(const AdminAnswer& page) {
    const auto& rows = page.json["clients"].items();
    count_ += rows.size();
    if (format_ == "json") return print_json(page);
    for (const Answer& row : rows) table_.add(format_ == "csv" ? client_fields(row) : client_cells(row, now_));
    format_ == "csv" ? table_.print_csv(console_.out) : table_.print(console_.out);
    if (!table_.empty()) table_.next_page();
  }

  void end(const std::string& cursor) {
    if (format_ == "json") {
      if (all_) write_json((count_ == 0 ? "{\"clients\":[" : "") + std::string("],\"cursor\":\"\"}\n"), console_.out);
      return;
    }
    if (format_ != "table") return;
    if (count_ == 0) console_.out.write("no active buckets\n");
    console_.out.flush();
    if (cursor.empty()) return;
    console_.err.write("There are more: --all shows them all, --cursor " + printable(cursor) + " the next page.\n");
  }

  std::size_t count() const noexcept { return count_; }

 private:
  void print_json(const AdminAnswer& page) {
    if (!all_) return write_json(page.content, console_.out);
    // The rows as they were sent: between the first "[" and the last "]".
    const std::size_t first = page.content.find('[');
    const std::size_t last = page.content.rfind(']');
    if (first == page.content.npos || last == page.content.npos || last <= first + 1) return;
    json_text_ = json_begun_ ? "," : "{\"clients\":[";
    json_begun_ = true;
    write_json(json_text_ + page.content.substr(first + 1, last - first - 1), console_.out);
  }

  Console& console_;
  std::string format_;
  bool all_;
  Table table_;
  Wall now_ = BootClock::wall();
  std::size_t count_ = 0;
  std::string json_text_;
  bool json_begun_ = false;
};

Exit run_clients(const Arguments& arguments, Console& console) {
  if (!arguments["--number"].empty() && !read_count(arguments, "--number", console)) return kUsage;
  AdminApi api(arguments, console);
  const bool all = arguments.has("--all");
  std::size_t expected = 0;
  if (all && console.err.can_redraw()) {
    const std::optional<AdminAnswer> stats = api.ask("GET", "/ratelimit/stats");
    if (!stats) return api.exit();
    expected = static_cast<std::size_t>(active_buckets(stats->json));
  }
  ClientPages pages(arguments, console);
  std::string cursor = arguments["--cursor"];
  {
    Progress progress(console, "client", arguments["--limit"].empty() ? expected : 0, !console.out.is_terminal());
    do {
      const std::optional<AdminAnswer> page = api.ask("GET", page_path(arguments, cursor));
      if (!page) return api.exit();
      cursor = page->json["cursor"].text();
      pages.print(*page);
      progress.update(pages.count(), pages.count());
      if (console.out.failure() != 0) return kFailed;
    } while (all && !cursor.empty());
  }
  pages.end(cursor);
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace

Command clients() {
  return {
      "clients",
      "list the active buckets and what is left in them",
      "A bucket is active while it is not full. ALLOWED, DENIED and SEEN are known for the busiest clients.\n"
      "--sort looks at every bucket; without it a page costs as much as it shows.",
      with_remote_options({{"--limit", "LIMIT", "only this limit"},
                           {"--sort",
                            "BY",
                            "order of the rows; the lowest first for remaining, otherwise the highest",
                            false,
                            {"denied", "requests", "remaining"},
                            false,
                            {},
                            false,
                            true},
                           {"--prefix", "TEXT", "only ids or identifiers with this prefix: 203.0.113., ip:2001:db8"},
                           {"--number", "N", "rows per page, at most 1000 (default 100)", false, {}, false, "-n"},
                           {"--cursor", "CURSOR", "continue after the page that printed this cursor"},
                           flag_option("--all", "all pages"),
                           output_option()},
                          Api::admin),
      "# which clients were denied most?\nweir clients --sort denied -n 10\n"
      "# all clients, for a program\nweir clients --all --output csv",
      run_clients,
  };
}

}  // namespace weir::cli
