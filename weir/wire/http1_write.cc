#include <algorithm>
#include <array>
#include <charconv>

#include "weir/base/text.h"
#include "weir/base/text_writer.h"
#include "weir/wire/http1.h"

namespace weir {
namespace {

// Below 400.
std::string_view reason_of_success(int status) noexcept {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 102:
      return "Processing";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    default:
      return "Done";
  }
}

std::string_view reason_of_error(int status) noexcept {
  switch (status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

std::string_view reason_of(int status) noexcept {
  return status < 400 ? reason_of_success(status) : reason_of_error(status);
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

void write_status(int status, TextWriter& writer) {
  writer.text("HTTP/1.1 ").integer(status).character(' ').text(reason_of(status)).text("\r\n");
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
  write_status(head.status, writer);
  if (!head.content_type.empty()) writer.text("Content-Type: ").text(head.content_type).text("\r\n");
  if (head.content == HttpContent::length) {
    writer.text("Content-Length: ").integer(static_cast<std::int64_t>(head.length)).text("\r\n");
  } else if (head.content == HttpContent::chunked) {
    writer.text("Transfer-Encoding: chunked\r\n");
  }
  writer.text(head.fields.lines);
  write_list(head.fields.list, writer);
  const auto is_date = [](const HttpHeader& field) { return same_word(field.name, "date"); };
  if (std::none_of(head.fields.list.begin(), head.fields.list.end(), is_date)) writer.text(head.date);
  if (!head.keep_alive) {
    writer.text("Connection: close\r\n");
  } else if (!head.http11) {
    writer.text("Connection: keep-alive\r\n");
  }
  writer.text("\r\n");
}

void write_upgrade_head(const HttpFields& fields, std::string& out) {
  TextWriter writer(out);
  write_status(101, writer);
  writer.text("Connection: Upgrade\r\n").text(fields.lines);
  for (const HttpHeader& field : fields.list) {
    if (same_word(field.name, "upgrade")) writer.text("Upgrade: ").text(field.value).text("\r\n");
  }
  write_list(fields.list, writer);
  writer.text("\r\n");
}

void write_interim_head(int status, const HttpFields& fields, std::string& out) {
  TextWriter writer(out);
  write_status(status, writer);
  writer.text(fields.lines);
  write_list(fields.list, writer);
  writer.text("\r\n");
}

}  // namespace weir
