// Calls the admin API for a command: reads the options, asks, and prints an error if there is no usable answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/answer.h"
#include "weir/cli/command.h"
#include "weir/cli/remote_session.h"

namespace weir::cli {

struct AdminAnswer {
  int status = 0;
  std::string content;  // the JSON as sent
  Answer json;
};

class AdminApi {
 public:
  // If the options are invalid, prints an error; then ask() returns nothing.
  AdminApi(const Arguments& arguments, Console& console);

  // Returns nothing after printing an error; exit() then has the exit status. A 404 is an answer only if
  // `may_be_missing`.
  std::optional<AdminAnswer> ask(std::string_view method, std::string_view path, std::string_view json = {},
                                 bool may_be_missing = false);
  // kOk until something goes wrong.
  Exit exit() const noexcept { return exit_; }
  // Null if the options are invalid.
  RemoteSession* session() noexcept { return session_.get(); }
  // Sets the timeout of calls that take long, unless --timeout is given.
  void wait_up_to(Duration time) noexcept;

 private:
  Console& console_;
  std::unique_ptr<RemoteSession> session_;
  Exit exit_ = kOk;
};

// The limits whose key is that source alone ("ip", "apikey"), as the server's configuration has them. Prints an error
// and returns nothing if there is none.
struct KeyedLimit {
  std::string name;
  bool has_rate = false;  // it has more than a quota
};
std::optional<std::vector<KeyedLimit>> limits_keyed_by(std::string_view source, AdminApi& api, Console& console,
                                                       Exit& exit);

// The active buckets of all limits, as far as the server knows.
std::uint64_t active_buckets(const Answer& stats);

// A number of seconds as a duration that people can read: "0.17" is "170ms", "1.947" is "1.9s". Not exact.
std::string readable_seconds(const Answer& seconds);
// An instant without its fraction of a second.
std::string readable_instant(const std::string& instant);
// How far an instant such as "2027-01-01T00:00:00Z" is from now: "2s ago", "in 59m". Empty if the text is not an
// instant.
std::string relative_time(const std::string& instant, Wall now);
// The limit's name for people: buckets of `throttle` have none.
std::string limit_cell(const Answer& row);
// "100/s", "5 per 1m": of "count" and "period". Empty if they are missing.
std::string readable_rate(const Answer& row);

}  // namespace weir::cli
