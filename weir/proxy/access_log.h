// The access log: one line per request, in Common Log Format or JSON, to standard output or a file.
//
// Thread-safe; lines never interleave.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/config/settings.h"
#include "weir/core/limit.h"
#include "weir/net/socket.h"

namespace weir::proxy {

// One limit that was asked, as an operator may see it.
struct AccessedLimit {
  std::string limit;
  std::string id;  // a hash or a handle where ids are hidden
  bool allowed = true;
  Count cost = 1;
  std::string tier = {};  // empty: none
};

struct AccessLine {
  Wall time{};
  std::string_view client;
  std::string_view method;  // empty: the head of the request could not be read
  std::string_view host;
  std::string_view target;  // with its query; lines have it without
  std::string_view protocol;
  int status = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  Duration duration{};
  std::string_view upstream;  // empty: none was asked
  Duration upstream_time{};
  std::string_view request_id;
  std::string_view user_agent;
  std::string_view route;
  std::string_view decision;
  const std::vector<AccessedLimit>* limits = nullptr;
};

// Return one line with its line feed.
std::string print_common(const AccessLine& line);
std::string print_json(const AccessLine& line);

class AccessLog {
 public:
  // Fails if the file of the settings cannot be written. Creates it.
  static Result<void> check(const config::Log& settings);
  // Applies the settings. Returns an Error and keeps what was there if the file cannot be opened.
  Result<void> configure(const config::Log& settings);
  // Opens the file again, after it was rotated.
  Result<void> reopen();
  bool enabled() const noexcept { return format_.load(std::memory_order_relaxed) != config::AccessLog::off; }
  void write(const AccessLine& line);

 private:
  Result<void> open(const std::string& path);

  std::atomic<config::AccessLog> format_{config::AccessLog::off};
  std::mutex mutex_;
  std::string path_;
  Socket file_;  // none: standard output
};

}  // namespace weir::proxy
