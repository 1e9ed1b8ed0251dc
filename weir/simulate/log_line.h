// One line of an access log as a policy sees it: the time of the request and the facts that the log has about it. One
// reader per format parses the text; nothing after the readers depends on the format.
//   combined  nginx and Apache, `common` of Weir: 203.0.113.9 - - [18/Nov/2026:05:26:32 +0000] "GET / HTTP/1.1" 200 2 …
//   envoy     Envoy's default format              haproxy  HAProxy's `option httplog`
//   json      JSON lines, Weir's own among them
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/base/zone.h"
#include "weir/core/query.h"

namespace weir::simulate {

enum class LogFormat : unsigned char { combined, envoy, haproxy, json };

std::string_view print(LogFormat format) noexcept;
std::optional<LogFormat> log_format_of(std::string_view name) noexcept;

// The views point into the line or the reader. They are valid until the reader reads the next line.
struct LogLine {
  Wall time{};
  Duration resolution{};  // of the time as written: a second, a millisecond, …
  std::array<std::string_view, bounds::log_fields_max> values{};  // by the reader's fields(); empty: the line has none
  std::string_view route;                                         // that a Weir server took; empty: not known
  bool refused = false;                                           // by a Weir server, before it asked a limit
  std::vector<NamedCharge> counted;                               // what a Weir server counted; ids as in bucket keys

  void clear() noexcept {
    values.fill({});
    route = {};
    refused = false;
    counted.clear();
  }
};

// Reads lines of one format. Use it on one thread; it reuses its memory from line to line.
class LogReader {
 public:
  virtual ~LogReader() = default;

  // The names of what a line may contain, named like attributes (identify/request.h): "ip" or "peer", "method", "path",
  // "host", "header:user-agent".
  std::span<const std::string> fields() const noexcept { return fields_; }
  // The Error describes what is wrong with the line.
  virtual Result<void> read(std::string_view line, LogLine& out) = 0;

 protected:
  explicit LogReader(std::vector<std::string> fields) : fields_(std::move(fields)) {}

 private:
  std::vector<std::string> fields_;
};

// Maps a field to a member of a JSON line: {"header:x-tenant-id", "tenant"}, {"ip", "client.address"}.
struct FieldName {
  std::string field;
  std::string member;  // "a.b" is b of the object a, unless there is a member "a.b"
};

struct ReaderOptions {
  Zone zone;                      // for times without an offset
  std::vector<FieldName> fields;  // json: replaces the usual names; haproxy: "capture.1" is a captured header
};

std::unique_ptr<LogReader> make_reader(LogFormat format, const ReaderOptions& options);

// Returns the format that reads most of these lines; nullopt if none reads any.
std::optional<LogFormat> detect_format(std::span<const std::string> lines, const ReaderOptions& options);

}  // namespace weir::simulate
