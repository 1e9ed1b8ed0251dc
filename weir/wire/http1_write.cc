#include <algorithm>
#include <array>
#include <charconv>

#include "weir/base/text.h"
#include "weir/base/text_writer.h"
#include "weir/wire/http1.h"

namespace weir {
namespace {

struct Reason {
  int status;
  std::string_view text;
};

// In the order of the status.
constexpr std::array kReasons = {
    Reason{101, "Switching Protocols"},
    Reason{102, "Processing"},
    Reason{103, "Early Hints"},
    Reason{200, "OK"},
    Reason{201, "Created"},
    Reason{202, "Accepted"},
    Reason{203, "Non-Authoritative Information"},
    Reason{204, "No Content"},
    Reason{205, "Reset Content"},
    Reason{206, "Partial Content"},
    Reason{207, "Multi-Status"},
    Reason{208, "Already Reported"},
    Reason{226, "IM Used"},
    Reason{300, "Multiple Choices"},
    Reason{301, "Moved Permanently"},
    Reason{302, "Found"},
    Reason{303, "See Other"},
    Reason{304, "Not Modified"},
    Reason{305, "Use Proxy"},
    Reason{307, "Temporary Redirect"},
    Reason{308, "Permanent Redirect"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{402, "Payment Required"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{406, "Not Acceptable"},
    Reason{407, "Proxy Authentication Required"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{410, "Gone"},
    Reason{411, "Length Required"},
    Reason{412, "Precondition Failed"},
    Reason{413, "Content Too Large"},
    Reason{414, "URI Too Long"},
    Reason{415, "Unsupported Media Type"},
    Reason{416, "Range Not Satisfiable"},
    Reason{417, "Expectation Failed"},
    Reason{421, "Misdirected Request"},
    Reason{422, "Unprocessable Content"},
    Reason{423, "Locked"},
    Reason{424, "Failed Dependency"},
    Reason{425, "Too Early"},
    Reason{426, "Upgrade Required"},
    Reason{428, "Precondition Required"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{451, "Unavailable For Legal Reasons"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{502, "Bad Gateway"},
    Reason{503, "Service Unavailable"},
    Reason{504, "Gateway Timeout"},
    Reason{505, "HTTP Version Not Supported"},
    Reason{506, "Variant Also Negotiates"},
    Reason{507, "Insufficient Storage"},
    Reason{508, "Loop Detected"},
    Reason{511, "Network Authentication Required"},
};

}  // namespace

std::string_view reason_of(int status) noexcept {
  const auto found = std::ranges::lower_bound(kReasons, status, {}, &Reason::status);
  if (found != kReasons.end() && found->status == status) return found->text;
  return status < 400 ? "Done" : "Error";
}

void write_field(std::string_view name, std::string_view value, std::string& out) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool is_framing_field(std::string_view name) noexcept {
  switch (name.size()) {
    case 7:
      return same_word(name, "upgrade");
    case 10:
      return same_word(name, "connection") || same_word(name, "keep-alive");
    case 14:
      return same_word(name, "content-length");
    case 16:
      return same_word(name, "proxy-connection");
    case 17:
      return same_word(name, "transfer-encoding");
    default:
      return false;
  }
}

void write_fields(const HttpFields& fields, std::string& out) {
  for (std::string_view lines = fields.lines; !lines.empty();) {
    const std::size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    if (!is_framing_field(line.substr(0, line.find(':')))) out.append(line).append("\r\n");
  }
  for (const HttpHeader& field : fields.list) {
    if (!is_framing_field(field.name)) write_field(field.name, field.value, out);
  }
}

void write_chunk(std::string_view content, std::string& out) {
  if (content.empty()) return;
  std::array<char, 16> digits;
  const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), content.size(), 16);
  out.append(digits.data(), end).append("\r\n").append(content).append("\r\n");
}

void write_last_chunk(std::span<const HttpHeader> trailers, std::string& out) {
  out += "0\r\n";
  write_fields({{}, trailers}, out);
  out += "\r\n";
}

void write_date_field(std::chrono::sys_seconds when, std::string& out) {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{when - day};
  // The leading 1 keeps leading zeros; `before` then replaces it.
  const auto two_digits = [&](char before, std::int64_t number) {
    const std::size_t place = out.size();
    append_integer(100 + number, out);
    out[place] = before;
  };
  out.append("Date: ").append(kDays.substr(std::chrono::weekday{day}.c_encoding() * 3, 3)).append(1, ',');
  two_digits(' ', unsigned{date.day()});
  out.append(1, ' ').append(kMonths.substr((unsigned{date.month()} - 1) * 3, 3));
  const std::size_t year = out.size();
  append_integer(10'000 + int{date.year()}, out);
  out[year] = ' ';
  two_digits(' ', time.hours().count());
  two_digits(':', time.minutes().count());
  two_digits(':', time.seconds().count());
  out += " GMT\r\n";
}

namespace {

void write_status(int status, std::string_view reason, TextWriter& writer) {
  if (reason.empty()) reason = reason_of(status);
  writer.text("HTTP/1.1 ").integer(status).character(' ').text(reason).text("\r\n");
}

void write_list(std::span<const HttpHeader> list, TextWriter& writer) {
  for (const HttpHeader& field : list) {
    if (is_framing_field(field.name)) continue;
    writer.text(field.name).text(": ").text(field.value).text("\r\n");
  }
}

}  // namespace

void write_response_head(const HttpResponseHead& head, std::string& out) {
  TextWriter writer(out);
  writer.expect(head.fields.lines.size() + head.date.size());
  write_status(head.status, head.reason, writer);
  if (!head.content_type.empty()) writer.text("Content-Type: ").text(head.content_type).text("\r\n");
  if (head.content == HttpContent::length) {
    writer.text("Content-Length: ").integer(static_cast<std::int64_t>(head.length)).text("\r\n");
  } else if (head.content == HttpContent::chunked) {
    writer.text("Transfer-Encoding: chunked\r\n");
  }
  writer.text(head.fields.lines);
  write_list(head.fields.list, writer);
  writer.text(head.date);
  if (!head.keep_alive) {
    writer.text("Connection: close\r\n");
  } else if (!head.http11) {
    writer.text("Connection: keep-alive\r\n");
  }
  writer.text("\r\n");
}

void write_upgrade_head(const HttpFields& fields, std::string& out) {
  TextWriter writer(out);
  write_status(101, {}, writer);
  writer.text("Connection: Upgrade\r\n").text(fields.lines);
  for (const HttpHeader& field : fields.list) {
    if (same_word(field.name, "upgrade")) writer.text("Upgrade: ").text(field.value).text("\r\n");
  }
  write_list(fields.list, writer);
  writer.text("\r\n");
}

void write_interim_head(int status, const HttpFields& fields, std::string& out) {
  TextWriter writer(out);
  write_status(status, {}, writer);
  writer.text(fields.lines);
  write_list(fields.list, writer);
  writer.text("\r\n");
}

}  // namespace weir
