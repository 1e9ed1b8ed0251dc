// JSON, both directions. The reader turns one bounded text into an immutable value and keeps numbers as written,
// because 0.005 has no exact binary form and a limiter must not round. The writer appends to a string and always
// produces valid JSON.
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

// Returns the name of a kind for error messages: "a string".
std::string_view name_of(JsonKind kind) noexcept;

// A view of one value in a JsonReader's last text. Valid until the reader reads again or is destroyed.
class JsonValue {
 public:
  // One value. Nodes are in the order of the text; an object's keys are nodes before their values.
  struct Node {
    std::string_view text;  // a string's characters, unescaped; otherwise the token as written; empty for containers
    std::uint32_t end;      // index of the first node after this one and its children
    std::uint32_t offset;   // where it starts in the text
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
  // Returns the number if it is written as an integer and fits. REQUIRES: is(JsonKind::number).
  std::optional<std::int64_t> integer() const noexcept;
  // Unescaped UTF-8; may contain any character, including NUL. REQUIRES: is(JsonKind::string).
  std::string_view string() const noexcept;
  // REQUIRES: is(JsonKind::array).
  Items items() const noexcept;
  // In the order written; keys are unique. REQUIRES: is(JsonKind::object).
  Members members() const noexcept;
  // Linear in the members. REQUIRES: is(JsonKind::object).
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

// A range over the items of an array.
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

// A range over the members of an object.
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

// Reads one text after another and reuses its memory. Thread safety: none.
class JsonReader {
 public:
  JsonReader();
  ~JsonReader();
  JsonReader(JsonReader&&) noexcept;
  JsonReader& operator=(JsonReader&&) noexcept;

  // Reads a text that is one value (RFC 8259) of valid UTF-8, with unique keys per object, at most
  // bounds::json_bytes_max bytes and bounds::json_depth_max levels deep. The Error names the byte (counted from 1) and
  // the rule.
  Result<JsonValue> read(std::string_view text);
  // The same without the fast path for short texts. Public for tests.
  Result<JsonValue> read_any(std::string_view text);

 private:
  class Parse;
  class PlainObject;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// Appends JSON to a string. Writes commas and escapes; the caller is responsible for the order of calls.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view key);
  // Escapes quotes, backslashes and control characters; replaces a byte that is not valid UTF-8 by U+FFFD.
  JsonWriter& string(std::string_view text);
  // Returns whether the character can be written in a string without an escape.
  static constexpr bool is_plain(char c) noexcept { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }
  JsonWriter& number(std::int64_t number);
  // REQUIRES: `text` is a JSON number, for example from print_seconds().
  JsonWriter& number(std::string_view text) { return token(text); }
  JsonWriter& boolean(bool value) { return token(value ? "true" : "false"); }
  JsonWriter& null() { return token("null"); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& token(std::string_view text);
  void separate();

  std::string& out_;
  bool comma_ = false;  // the next value needs a comma before it
};

}  // namespace weir
