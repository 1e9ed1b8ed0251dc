#include "weir/wire/resp.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"

namespace weir::resp {
namespace {

constexpr std::string_view kCrlf = "\r\n";
constexpr std::size_t kFarTooLarge = std::size_t{1} << 40;  // exceeds every limit

// The length in a header line, up to and including its CRLF.
struct Length {
  Parsed parsed = Parsed::more;
  std::size_t value = 0;
  std::size_t end = 0;  // the first byte after it
};

// No sign, no leading zero, within every limit. Checks byte by byte, so that an invalid length is found at the same
// byte however the bytes arrive.
Length take_length(std::string_view bytes, std::size_t at) {
  Length length;
  for (std::size_t i = at; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    if (byte >= '0' && byte <= '9') {
      if (i > at && length.value == 0) return {Parsed::broken};
      length.value = length.value * 10 + static_cast<std::size_t>(byte - '0');
      if (length.value > kFarTooLarge) return {Parsed::broken};
      continue;
    }
    if (byte != '\r' || i == at) return {Parsed::broken};
    if (i + 1 == bytes.size()) return {};
    if (bytes[i + 1] != '\n') return {Parsed::broken};
    return {Parsed::done, length.value, i + 2};
  }
  return {};
}

// A complete number, with the same rules.
std::optional<std::size_t> whole_length(std::string_view text) {
  std::size_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value > kFarTooLarge) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return value;
}

constexpr std::size_t kLineBytes = 24;  // enough for a type, every int64 and CRLF

char* write_line(char type, std::int64_t value, char* to) noexcept {
  *to++ = type;
  if (value >= 0 && value < 10) {
    *to++ = static_cast<char>('0' + value);
  } else {
    to = std::to_chars(to, to + kLineBytes - 3, value).ptr;  // without the type and CRLF
  }
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

constexpr bool is_space(char byte) noexcept {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

constexpr char unescape(char byte) noexcept {
  switch (byte) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return byte;
  }
}

// Returns the text with line breaks replaced by spaces.
void append_line(std::string_view text, std::string& out) {
  for (const char byte : text) out += byte == '\r' || byte == '\n' ? ' ' : byte;
}

}  // namespace

Parsed Request::parse(std::string_view bytes) {
  count_ = 0;
  size_ = 0;
  copied_ = false;
  inline_ = false;
  if (bytes.empty()) return Parsed::more;
  return bytes.front() == '*' ? parse_array(bytes) : parse_inline(bytes);
}

Parsed Request::parse_array(std::string_view bytes) {
  const Length elements = take_length(bytes, 1);
  if (elements.parsed == Parsed::more) return Parsed::more;
  if (elements.parsed == Parsed::broken || elements.value > bounds::resp_arguments_max) {
    return broken("Protocol error: invalid multibulk length");
  }
  std::size_t at = elements.end;
  for (std::size_t i = 0; i < elements.value; ++i) {
    if (at == bytes.size()) return Parsed::more;
    if (bytes[at] != '$') return broken(std::string("Protocol error: expected '$', got '") + bytes[at] + "'");
    const Length length = take_length(bytes, at + 1);
    if (length.parsed == Parsed::more) return Parsed::more;
    if (length.parsed == Parsed::broken || length.value > bounds::resp_argument_bytes_max) {
      return broken("Protocol error: invalid bulk length");
    }
    const std::size_t end = length.end + length.value;
    if (end + kCrlf.size() > bounds::resp_command_bytes_max) return broken("Protocol error: too big request");
    if (bytes.size() < end + kCrlf.size()) return Parsed::more;
    if (bytes[end] != '\r' || bytes[end + 1] != '\n') {
      return broken("Protocol error: expected CRLF after a bulk string");
    }
    arguments_[count_++] = bytes.substr(length.end, length.value);
    at = end + kCrlf.size();
  }
  size_ = at;
  return Parsed::done;
}

Parsed Request::parse_inline(std::string_view bytes) {
  const std::string_view window = bytes.substr(0, bounds::resp_argument_bytes_max + kCrlf.size());
  const std::size_t newline = window.find('\n');
  if (newline == std::string_view::npos) {
    if (window.size() < bounds::resp_argument_bytes_max + kCrlf.size()) return Parsed::more;
    return broken("Protocol error: too big inline request");
  }
  std::string_view line = window.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > bounds::resp_argument_bytes_max) return broken("Protocol error: too big inline request");
  inline_ = true;
  size_ = newline + 1;
  return split(line) ? Parsed::done : Parsed::broken;
}

// Splits at spaces. Like in redis-cli, a quote anywhere in a word starts a part in which spaces are kept.
bool Request::split(std::string_view line) {
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return true;
    const std::size_t begin = at;
    while (at < line.size() && !is_space(line[at]) && line[at] != '"' && line[at] != '\'') ++at;
    if (at == line.size() || is_space(line[at])) {
      if (!push(line.substr(begin, at - begin))) return false;
      continue;
    }
    if (!copied_) {
      // The unescaped text is never longer than the line, so after this reserve the views into it stay valid.
      copied_ = true;
      unescaped_.clear();
      unescaped_.reserve(line.size());
    }
    const std::size_t copy = unescaped_.size();
    at = begin;
    while (at < line.size() && !is_space(line[at])) {
      if (line[at] != '"' && line[at] != '\'') {
        unescaped_ += line[at++];
      } else if (!take_quoted(line, at)) {
        broken("Protocol error: unbalanced quotes in request");
        return false;
      }
    }
    if (!push(std::string_view(unescaped_).substr(copy))) return false;
  }
}

// Consumes from the quote at `at` to its closing quote, which must end the word.
bool Request::take_quoted(std::string_view line, std::size_t& at) {
  const char quote = line[at++];
  for (; at < line.size(); ++at) {
    if (line[at] == quote) {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (line[at] != '\\' || at + 1 == line.size()) {
      unescaped_ += line[at];
    } else if (quote == '\'') {
      if (line[at + 1] == '\'') ++at;
      unescaped_ += line[at];
    } else if (at + 3 < line.size() && line[at + 1] == 'x' && hex_value(line[at + 2]) >= 0 &&
               hex_value(line[at + 3]) >= 0) {
      unescaped_ += static_cast<char>(hex_value(line[at + 2]) * 16 + hex_value(line[at + 3]));
      at += 3;
    } else {
      unescaped_ += unescape(line[++at]);
    }
  }
  return false;
}

bool Request::push(std::string_view argument) {
  if (count_ == arguments_.size()) {
    broken("Protocol error: too many arguments in inline request");
    return false;
  }
  arguments_[count_++] = argument;
  return true;
}

Parsed Request::broken(std::string_view problem) {
  count_ = 0;
  size_ = 0;
  problem_ = problem;
  return Parsed::broken;
}

void ReplyWriter::line(char type, std::string_view text) {
  out_ += type;
  append_line(text, out_);
  out_ += kCrlf;
}

void ReplyWriter::header(char type, std::int64_t value) {
  char text[kLineBytes];
  out_.append(text, static_cast<std::size_t>(write_line(type, value, text) - text));
}

void ReplyWriter::simple(std::string_view text) {
  line('+', text);
}

void ReplyWriter::error(std::string_view text) {
  line('-', text);
}

void ReplyWriter::integer(std::int64_t value) {
  header(':', value);
}

void ReplyWriter::bulk(std::string_view text) {
  header('$', static_cast<std::int64_t>(text.size()));
  out_ += text;
  out_ += kCrlf;
}

void ReplyWriter::null() {
  out_ += version_ == Version::resp3 ? "_\r\n" : "$-1\r\n";
}

void ReplyWriter::boolean(bool value) {
  if (version_ == Version::resp2) return integer(value ? 1 : 0);
  out_ += value ? "#t\r\n" : "#f\r\n";
}

void ReplyWriter::real(double value) {
  char text[32];
  std::string_view shown;
  if (std::isnan(value)) {
    shown = "nan";
  } else if (std::isinf(value)) {
    shown = value > 0 ? "inf" : "-inf";
  } else {
    shown = {text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text)};
  }
  if (version_ == Version::resp2) return bulk(shown);
  line(',', shown);
}

void ReplyWriter::array(std::size_t count) {
  header('*', static_cast<std::int64_t>(count));
}

void ReplyWriter::set(std::size_t count) {
  header(version_ == Version::resp3 ? '~' : '*', static_cast<std::int64_t>(count));
}

void ReplyWriter::map(std::size_t pairs) {
  if (version_ == Version::resp2) return array(2 * pairs);
  header('%', static_cast<std::int64_t>(pairs));
}

void ReplyWriter::integers(std::span<const std::int64_t> values) {
  char text[kLineBytes * (kIntegersMax + 1)];
  WEIR_ASSERT(values.size() <= kIntegersMax);
  char* end = write_line('*', static_cast<std::int64_t>(values.size()), text);
  for (const std::int64_t value : values) end = write_line(':', value, end);
  out_.append(text, static_cast<std::size_t>(end - text));
}

void write_command(std::span<const std::string_view> arguments, std::string& out) {
  ReplyWriter writer(out, Version::resp2);
  writer.array(arguments.size());
  for (const std::string_view argument : arguments) writer.bulk(argument);
}

Parsed Reply::parse(std::string_view bytes) {
  values_.clear();
  size_ = 0;
  std::size_t at = 0;
  const Parsed parsed = take(bytes, at, 0);
  if (parsed == Parsed::done) size_ = at;
  return parsed;
}

// Parses one value with its nested values, starting at `at`.
Parsed Reply::take(std::string_view bytes, std::size_t& at, int depth) {
  if (at == bytes.size()) return Parsed::more;
  const char kind = bytes[at++];
  if (std::string_view("+-:$*_#,(=!%~>|").find(kind) == std::string_view::npos) {
    return broken("unknown reply type");
  }
  std::string_view line;
  if (const Parsed parsed = take_line(bytes, at, line); parsed != Parsed::done) return parsed;
  switch (kind) {
    case '$':
    case '=':
    case '!':
      return take_blob(bytes, at, kind, line);
    case '*':
    case '~':
    case '>':
    case '%':
    case '|':
      return take_elements(bytes, at, kind, line, depth);
    default:
      return take_scalar(kind, line);
  }
}

Parsed Reply::take_line(std::string_view bytes, std::size_t& at, std::string_view& line) {
  const std::string_view window = bytes.substr(0, bounds::resp_reply_bytes_max);
  const std::size_t end = window.find('\r', at);
  if (end == std::string_view::npos || end + 1 == window.size()) {
    return window.size() < bounds::resp_reply_bytes_max ? Parsed::more : broken("the reply is too long");
  }
  if (bytes[end + 1] != '\n') return broken("a line does not end with CRLF");
  line = bytes.substr(at, end - at);
  at = end + kCrlf.size();
  return Parsed::done;
}

Parsed Reply::take_blob(std::string_view bytes, std::size_t& at, char kind, std::string_view length) {
  if (kind == '$' && length == "-1") return push({});
  const std::optional<std::size_t> size = whole_length(length);
  if (!size) return broken("invalid length");
  const std::size_t end = at + *size;
  if (end + kCrlf.size() > bounds::resp_reply_bytes_max) return broken("the reply is too long");
  if (bytes.size() < end + kCrlf.size()) return Parsed::more;
  if (bytes.substr(end, kCrlf.size()) != kCrlf) return broken("a string does not end with CRLF");
  Value value{kind == '$' ? Type::bulk : Type::error, bytes.substr(at, *size)};
  if (kind == '=') {
    if (value.text.size() < 4 || value.text[3] != ':') return broken("a verbatim string has no format");
    value.type = Type::verbatim;
    value.text.remove_prefix(4);
  }
  at = end + kCrlf.size();
  return push(value);
}

Parsed Reply::take_elements(std::string_view bytes, std::size_t& at, char kind, std::string_view length, int depth) {
  if (kind == '*' && length == "-1") return push({});
  if (depth == bounds::resp_reply_depth_max) return broken("the reply is nested too deeply");
  const std::optional<std::size_t> size = whole_length(length);
  if (!size) return broken("invalid length");
  const std::size_t count = kind == '%' || kind == '|' ? 2 * *size : *size;
  const std::size_t index = values_.size();
  if (count > bounds::resp_reply_values_max - index) return broken("the reply has too many values");
  const Type type = kind == '*' ? Type::array : kind == '~' ? Type::set : kind == '>' ? Type::push : Type::map;
  if (const Parsed parsed = push({type, {}}); parsed != Parsed::done) return parsed;
  for (std::size_t i = 0; i < count; ++i) {
    if (const Parsed parsed = take(bytes, at, depth + 1); parsed != Parsed::done) return parsed;
  }
  if (kind == '|') {
    // The value after an attribute is the one it belongs to.
    values_.resize(index);
    return take(bytes, at, depth + 1);
  }
  values_[index].count = count;
  values_[index].skip = values_.size() - index;
  return Parsed::done;
}

Parsed Reply::take_scalar(char kind, std::string_view line) {
  Value value;
  switch (kind) {
    case '+':
      value = {Type::simple, line};
      break;
    case '-':
      value = {Type::error, line};
      break;
    case ':': {
      value.type = Type::integer;
      if (line.starts_with('+')) line.remove_prefix(1);
      const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value.integer);
      if (failure != std::errc{} || end != line.data() + line.size()) return broken("invalid integer");
      break;
    }
    case '(': {
      const std::string_view digits = line.substr(line.starts_with('-') || line.starts_with('+') ? 1 : 0);
      if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
        return broken("invalid big number");
      }
      value = {Type::big_number, line};
      break;
    }
    case '_':
      if (!line.empty()) return broken("invalid null");
      break;
    case '#':
      if (line != "t" && line != "f") return broken("invalid boolean");
      value = {Type::boolean, {}, line == "t" ? 1 : 0};
      break;
    default: {
      value.type = Type::real;
      const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value.real);
      if (failure != std::errc{} || end != line.data() + line.size()) return broken("invalid double");
      break;
    }
  }
  return push(value);
}

Parsed Reply::push(Value value) {
  if (values_.size() == bounds::resp_reply_values_max) return broken("the reply has too many values");
  values_.push_back(value);
  return Parsed::done;
}

Parsed Reply::broken(std::string_view problem) {
  values_.clear();
  problem_ = problem;
  return Parsed::broken;
}

}  // namespace weir::resp
