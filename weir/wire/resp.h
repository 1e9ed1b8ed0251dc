// RESP, the Redis protocol, versions 2 and 3, both directions: Request and ReplyWriter are the server's side, Reply and
// write_command() the client's. No I/O. A parser reads the front of a buffer. Pass an incomplete message again with
// more bytes; the result depends only on the bytes, not on how they were split.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::resp {

enum class Parsed : unsigned char {
  more,    // incomplete
  done,    // one complete message
  broken,  // invalid; problem() says why
};

// A client's command: an array of bulk strings, or an inline command as typed into a terminal. Reusable. The cost
// depends on the number of arguments, not on their length.
class Request {
 public:
  Parsed parse(std::string_view bytes);

  // After done: the command name and its arguments, as views into `bytes` or, if copied(), into this object until the
  // next parse(). Empty for an empty line or array, which gets no reply.
  std::span<const std::string_view> arguments() const noexcept { return {arguments_.data(), count_}; }
  bool copied() const noexcept { return copied_; }
  bool is_inline() const noexcept { return inline_; }
  // After done: the number of bytes it used.
  std::size_t size() const noexcept { return size_; }
  // After broken: Redis's error text, for example "Protocol error: invalid bulk length".
  std::string_view problem() const noexcept { return problem_; }

 private:
  Parsed parse_array(std::string_view bytes);
  Parsed parse_inline(std::string_view bytes);
  bool split(std::string_view line);
  bool take_quoted(std::string_view line, std::size_t& at);
  bool push(std::string_view argument);
  Parsed broken(std::string_view problem);

  std::array<std::string_view, bounds::resp_arguments_max> arguments_;
  std::size_t count_ = 0;
  std::size_t size_ = 0;
  bool copied_ = false;
  bool inline_ = false;
  std::string unescaped_;  // of an inline command with quotes
  std::string problem_;
};

enum class Version : unsigned char { resp2 = 2, resp3 = 3 };

// Appends replies to a string. In RESP2 a map is a flat array, a null a null bulk string, a boolean an integer, a
// double a bulk string.
class ReplyWriter {
 public:
  ReplyWriter(std::string& out, Version version) : out_(out), version_(version) {}

  Version version() const noexcept { return version_; }
  void simple(std::string_view text);  // line breaks become spaces
  void error(std::string_view text);   // "ERR what is wrong"; line breaks in it become spaces
  void integer(std::int64_t value);
  void bulk(std::string_view text);
  void null();
  void boolean(bool value);
  void real(double value);
  // The next `count` replies, or pairs of replies, are the elements.
  void array(std::size_t count);
  void set(std::size_t count);
  void map(std::size_t pairs);
  // Writes an array of integers at once. REQUIRES: at most kIntegersMax.
  static constexpr std::size_t kIntegersMax = 8;
  void integers(std::span<const std::int64_t> values);

 private:
  void line(char type, std::string_view text);
  void header(char type, std::int64_t value);

  std::string& out_;
  Version version_;
};

// Appends a command as an array of bulk strings.
void write_command(std::span<const std::string_view> arguments, std::string& out);

enum class Type : unsigned char {
  simple,
  error,  // simple or bulk
  integer,
  bulk,
  verbatim,  // its text without the format prefix
  big_number,
  null,
  boolean,
  real,
  array,
  set,
  map,   // elements alternate: key, value, key, value, …
  push,  // an out-of-band message, not a reply to a command
};

// A server's reply as a flat list: elements follow their aggregate, depth first. Attributes are skipped. Reusable: it
// reuses its memory.
class Reply {
 public:
  struct Value {
    Type type = Type::null;
    std::string_view text;     // of strings, errors and big numbers: a view into the parsed bytes
    std::int64_t integer = 0;  // of an integer; of a boolean 0 or 1
    double real = 0;           // of a real
    std::size_t count = 0;     // elements of an aggregate
    std::size_t skip = 1;      // number of values including itself and nested ones
  };

  Parsed parse(std::string_view bytes);

  // After done.
  std::span<const Value> values() const noexcept { return values_; }
  const Value& root() const noexcept { return values_.front(); }
  std::size_t size() const noexcept { return size_; }
  std::string_view problem() const noexcept { return problem_; }

 private:
  Parsed take(std::string_view bytes, std::size_t& at, int depth);
  Parsed take_line(std::string_view bytes, std::size_t& at, std::string_view& line);
  Parsed take_blob(std::string_view bytes, std::size_t& at, char kind, std::string_view length);
  Parsed take_elements(std::string_view bytes, std::size_t& at, char kind, std::string_view length, int depth);
  Parsed take_scalar(char kind, std::string_view line);
  Parsed push(Value value);
  Parsed broken(std::string_view problem);

  std::vector<Value> values_;
  std::size_t size_ = 0;
  std::string problem_;
};

}  // namespace weir::resp
