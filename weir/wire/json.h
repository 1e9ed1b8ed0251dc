// JSON, both directions. Reading: one bounded text in, one immutable value out, numbers as they were written, because
// 0.005 has no exact binary form and a limiter must not round. Writing: appended to a string, always valid JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"

namespace weir {

enum class JsonKind : unsigned char { null, boolean, number, string, array, object };

// "a string", for sentences.
std::string_view name_of(JsonKind kind) noexcept;

// A view of one value inside a JsonReader's last text. Valid until that reader reads again or dies.
class JsonValue {
 public:
  // One value of the text. Nodes lie in the order of the text; an object's keys are nodes before their values.
  struct Node {
    std::string_view text;  // a string's characters, unescaped; otherwise the token as written; empty for containers
    std::uint32_t end;      // index of the first node behind this one and everything inside it
    std::uint32_t offset;   // where in the text it begins
    JsonKind kind;
  };

  struct Member;
  class Items;
  class Members;

  JsonKind kind() const noexcept { return node().kind; }
  bool is(JsonKind kind) const noexcept { return node().kind == kind; }

  // REQUIRES: is(JsonKind::boolean).
  bool boolean() const noexcept;
  // As written: "0.005", "-1e3". REQUIRES: is(JsonKind::number).
  std::string_view number() const noexcept;
  // The number as a whole one, if it is written as one and fits. REQUIRES: is(JsonKind::number).
  std::optional<std::int64_t> integer() const noexcept;
  // Unescaped UTF-8; may hold any character, NUL too. REQUIRES: is(JsonKind::string).
  std::string_view string() const noexcept;
  // REQUIRES: is(JsonKind::array).
  Items items() const noexcept;
  // In the order written; no key occurs twice. REQUIRES: is(JsonKind::object).
  Members members() const noexcept;
  // Linear. REQUIRES: is(JsonKind::object).
  std::optional<JsonValue> find(std::string_view key) const noexcept;

 private:
  friend class JsonReader;
  JsonValue(const Node* nodes, std::uint32_t index) noexcept : nodes_(nodes), index_(index) {}
  const Node& node() const noexcept { return nodes_[index_]; }

  const Node* nodes_;
  std::uint32_t index_;
};

struct JsonValue::Member {
  std::string_view key;
  JsonValue value;
};

// What a range-for over an array needs.
class JsonValue::Items {
 public:
  class Iterator {
   public:
    Iterator(const Node* nodes, std::uint32_t index) noexcept : nodes_(nodes), index_(index) {}
    JsonValue operator*() const noexcept { return JsonValue(nodes_, index_); }
    Iterator& operator++() noexcept {
      index_ = nodes_[index_].end;
      return *this;
    }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    const Node* nodes_;
    std::uint32_t index_;
  };
  explicit Items(JsonValue array) noexcept : array_(array) {}
  Iterator begin() const noexcept { return {array_.nodes_, array_.index_ + 1}; }
  Iterator end() const noexcept { return {array_.nodes_, array_.node().end}; }

 private:
  JsonValue array_;
};

// And over an object.
class JsonValue::Members {
 public:
  class Iterator {
   public:
    Iterator(const Node* nodes, std::uint32_t index) noexcept : nodes_(nodes), index_(index) {}
    Member operator*() const noexcept { return {nodes_[index_].text, JsonValue(nodes_, index_ + 1)}; }
    Iterator& operator++() noexcept {
      index_ = nodes_[index_ + 1].end;
      return *this;
    }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    const Node* nodes_;
    std::uint32_t index_;
  };
  explicit Members(JsonValue object) noexcept : object_(object) {}
  Iterator begin() const noexcept { return {object_.nodes_, object_.index_ + 1}; }
  Iterator end() const noexcept { return {object_.nodes_, object_.node().end}; }

 private:
  JsonValue object_;
};

// Reads one text after another and keeps its memory between them. Belongs to one thread.
class JsonReader {
 public:
  JsonReader();
  ~JsonReader();
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(JsonReader&&) noexcept;

  // The whole text is one value (RFC 8259), valid UTF-8, no key twice in an object, at most bounds::json_bytes_max
  // bytes and bounds::json_depth_max containers deep. The Error says at which byte (counted from 1) and which rule.
  Result<JsonValue> read(std::string_view text);
  // The same, without the short way for short texts. Public for tests.
  Result<JsonValue> read_any(std::string_view text);

 private:
  class Parse;
  class PlainObject;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// Appends JSON to a string. Commas and escapes are its business, the order of calls is the caller's.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view key);
  // Quotes, backslashes and control characters are escaped; a byte that is not part of valid UTF-8 becomes U+FFFD.
  JsonWriter& string(std::string_view text);
  // Whether it stands in a string as it is, without an escape or a look at its neighbours.
  static constexpr bool is_plain(char c) noexcept { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }
  JsonWriter& number(std::int64_t number);
  // REQUIRES: `text` is a JSON number, such as print_seconds() makes.
  JsonWriter& number(std::string_view text) { return token(text); }
  JsonWriter& boolean(bool value) { return token(value ? "true" : "false"); }
  JsonWriter& null() { return token("null"); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& token(std::string_view text);
  void separate();

  std::string& out_;
  bool comma_ = false;  // a value stands before this place
};

}  // namespace weir
