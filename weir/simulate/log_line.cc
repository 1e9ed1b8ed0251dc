#include "weir/simulate/log_line.h"

#include <algorithm>
#include <utility>

#include "weir/simulate/combined_log.h"
#include "weir/simulate/envoy_log.h"
#include "weir/simulate/haproxy_log.h"
#include "weir/simulate/json_log.h"

namespace weir::simulate {
namespace {

using FormatName = std::pair<LogFormat, std::string_view>;
constexpr std::array<FormatName, 4> kFormats{
    FormatName{LogFormat::combined, "combined"}, FormatName{LogFormat::envoy, "envoy"},
    FormatName{LogFormat::haproxy, "haproxy"}, FormatName{LogFormat::json, "json"}};

}  // namespace

std::string_view print(LogFormat format) noexcept {
  return std::ranges::find(kFormats, format, &FormatName::first)->second;
}

std::optional<LogFormat> log_format_of(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kFormats, name, &FormatName::second);
  return found == kFormats.end() ? std::nullopt : std::optional(found->first);
}

std::unique_ptr<LogReader> make_reader(LogFormat format, const ReaderOptions& options) {
  switch (format) {
    case LogFormat::combined:
      return std::make_unique<CombinedLog>();
    case LogFormat::envoy:
      return std::make_unique<EnvoyLog>();
    case LogFormat::haproxy:
      return std::make_unique<HaproxyLog>(options);
    case LogFormat::json:
      break;
  }
  return std::make_unique<JsonLog>(options);
}

std::optional<LogFormat> detect_format(std::span<const std::string> lines, const ReaderOptions& options) {
  std::optional<LogFormat> best;
  std::ptrdiff_t most = 0;
  LogLine line;
  for (const auto& [format, name] : kFormats) {
    const std::unique_ptr<LogReader> reader = make_reader(format, options);
    const auto reads = [&](const std::string& text) { return reader->read(text, line).has_value(); };
    const std::ptrdiff_t count = std::ranges::count_if(lines, reads);
    if (count <= most) continue;
    most = count;
    best = format;
  }
  return best;
}

}  // namespace weir::simulate
