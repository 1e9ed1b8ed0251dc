#include "weir/proxy/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/wire/json.h"

namespace weir::proxy {
namespace {

std::string_view without_query(std::string_view target) noexcept {
  return target.substr(0, std::min(target.find('?'), target.size()));
}

// A field in quotes must not end them.
void append_quoted(std::string_view text, std::string& out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (byte < 0x20 || byte >= 0x7F) {
      out += "\\x";
      append_hex(byte, out);
    } else {
      out += c;
    }
  }
}

// "2026-11-18T05:21:36.123456Z".
std::string print_micros(Wall wall) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(wall.time_since_epoch());
  const std::time_t seconds = static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(micros).count());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &utc);
  std::string fraction = std::to_string(micros.count() % 1'000'000);
  fraction.insert(0, 6 - std::min<std::size_t>(fraction.size(), 6), '0');
  return std::string(text.data(), size) + fraction + "Z";
}

Result<Socket> open_file(const std::string& path) {
  Socket file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (!file) return Error{Fault::unavailable, "log.access_file " + quote(path) + ": " + std::strerror(errno)};
  return file;
}

std::string_view or_dash(std::string_view text) noexcept {
  return text.empty() ? std::string_view("-") : text;
}

}  // namespace

std::string print_common(const AccessLine& line) {
  const std::time_t seconds =
      static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(line.time.time_since_epoch()).count());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> when{};
  const std::size_t size = std::strftime(when.data(), when.size(), "%d/%b/%Y:%H:%M:%S +0000", &utc);
  std::string out(or_dash(line.client));
  out.append(" - - [").append(when.data(), size).append("] \"");
  if (line.method.empty()) {
    out += '-';
  } else {
    append_quoted(line.method, out);
    out += ' ';
    append_quoted(without_query(line.target), out);
    out.append(" ").append(line.protocol);
  }
  out += "\" ";
  append_integer(line.status, out);
  out += ' ';
  append_integer(static_cast<std::int64_t>(line.bytes_out), out);
  out += '\n';
  return out;
}

std::string print_json(const AccessLine& line) {
  std::string out;
  JsonWriter json(out);
  const auto count = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  json.begin_object().key("time").string(print_micros(line.time)).key("client").string(line.client);
  json.key("method").string(line.method).key("host").string(line.host).key("path").string(without_query(line.target));
  json.key("protocol").string(line.protocol).key("status").number(std::int64_t{line.status});
  json.key("bytes_in").number(count(line.bytes_in)).key("bytes_out").number(count(line.bytes_out));
  json.key("duration").number(print_seconds(line.duration));
  json.key("upstream").string(line.upstream).key("upstream_time").number(print_seconds(line.upstream_time));
  json.key("request_id").string(line.request_id).key("user_agent").string(line.user_agent);
  json.key("route").string(line.route).key("decision").string(line.decision).key("limits").begin_array();
  if (line.limits != nullptr) {
    for (const AccessedLimit& limit : *line.limits) {
      json.begin_object().key("limit").string(limit.limit).key("id").string(limit.id);
      json.key("allowed").boolean(limit.allowed);
      if (limit.cost != 1) json.key("cost").number(std::int64_t{limit.cost});
      if (!limit.tier.empty()) json.key("tier").string(limit.tier);
      json.end_object();
    }
  }
  json.end_array().end_object();
  out += '\n';
  return out;
}

Result<void> AccessLog::check(const config::Log& settings) {
  if (settings.access == config::AccessLog::off || settings.access_file.empty()) return {};
  if (Result<Socket> file = open_file(settings.access_file); !file) return file.error();
  return {};
}

Result<void> AccessLog::open(const std::string& path) {
  Socket file;
  if (!path.empty()) {
    Result<Socket> opened = open_file(path);
    if (!opened) return opened.error();
    file = std::move(*opened);
  }
  path_ = path;
  file_ = std::move(file);
  return {};
}

Result<void> AccessLog::configure(const config::Log& settings) {
  const std::lock_guard lock(mutex_);
  if (settings.access != config::AccessLog::off && (settings.access_file != path_ || (!path_.empty() && !file_))) {
    if (Result<void> opened = open(settings.access_file); !opened) return opened;
  }
  format_ = settings.access;
  return {};
}

Result<void> AccessLog::reopen() {
  const std::lock_guard lock(mutex_);
  if (path_.empty() || !enabled()) return {};
  return open(std::string(path_));
}

void AccessLog::write(const AccessLine& line) {
  const config::AccessLog format = format_.load(std::memory_order_relaxed);
  if (format == config::AccessLog::off) return;
  const std::string text = format == config::AccessLog::json ? print_json(line) : print_common(line);
  const std::lock_guard lock(mutex_);
  const int to = file_ ? file_.fd() : STDOUT_FILENO;
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(to, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // a full disk costs lines, not requests
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace weir::proxy
