#include "weir/wire/json.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/base/utf8.h"

namespace weir {
namespace {

namespace ondemand = simdjson::ondemand;

std::string_view without_trailing_space(std::string_view token) noexcept {
  const std::size_t end = token.find_last_not_of(" \t\r\n");
  return token.substr(0, end + 1);
}

bool is_number(std::string_view token) noexcept {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < token.size() && token[i] >= '0' && token[i] <= '9') ++i;
    return i - start;
  };
  if (i < token.size() && token[i] == '-') ++i;
  const bool zero = i < token.size() && token[i] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (i < token.size() && token[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < token.size() && (token[i] == 'e' || token[i] == 'E')) {
    ++i;
    if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == token.size();
}

Error broken(std::size_t offset, std::string_view sentence) {
  return Error{Fault::invalid, "byte " + std::to_string(offset + 1) + ": " + std::string(sentence)};
}

// simdjson reports these errors in its first pass without a position, so this searches for it.
Error first_pass_error(simdjson::error_code code, std::string_view text) {
  bool in_string = false;
  std::size_t quote = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) return broken(i, "the text is not valid UTF-8");
    if (text[i] == '"') {
      in_string = !in_string;
      quote = i;
    } else if (in_string && text[i] == '\\') {
      ++i;
      continue;
    } else if (in_string && static_cast<unsigned char>(text[i]) < 0x20) {
      return broken(i, "a control character inside a string must be escaped");
    }
    i += length;
  }
  if (in_string) return broken(quote, "a string that begins here has no end");
  if (code == simdjson::EMPTY) return broken(0, "there is no value");
  return broken(0, "the text is not JSON");
}

}  // namespace

std::string_view name_of(JsonKind kind) noexcept {
  constexpr std::string_view kNames[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool JsonValue::boolean() const noexcept {
  WEIR_ASSERT(is(JsonKind::boolean));
  return node().text == "true";
}

std::string_view JsonValue::number() const noexcept {
  WEIR_ASSERT(is(JsonKind::number));
  return node().text;
}

std::optional<std::int64_t> JsonValue::integer() const noexcept {
  const std::string_view text = number();
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view JsonValue::string() const noexcept {
  WEIR_ASSERT(is(JsonKind::string));
  return node().text;
}

JsonValue::Items JsonValue::items() const noexcept {
  WEIR_ASSERT(is(JsonKind::array));
  return Items(*this);
}

JsonValue::Members JsonValue::members() const noexcept {
  WEIR_ASSERT(is(JsonKind::object));
  return Members(*this);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const noexcept {
  for (const Member member : members()) {
    if (member.key == key) return member.value;
  }
  return std::nullopt;
}

struct JsonReader::Memory {
  ondemand::parser parser;
  std::string text;  // the text and simdjson's padding; tokens point into it, strings point into the parser
  std::vector<JsonValue::Node> nodes;
  std::vector<std::pair<std::string_view, std::uint32_t>> keys;  // of one object, with their offsets
};

// Parses one text. simdjson's on-demand parser validates only what is accessed, so this accesses every value, and
// checks tokens other than strings against the grammar here.
class JsonReader::Parse {
 public:
  Parse(Memory& memory, std::size_t size) noexcept : memory_(memory), size_(size) {}

  Result<void> document() {
    ondemand::document document;
    const auto code =
        memory_.parser.iterate(memory_.text.data(), size_, size_ + simdjson::SIMDJSON_PADDING).get(document);
    if (code) return first_pass_error(code, text());
    ondemand::json_type type{};
    if (document.type().get(type)) return at(document.current_location(), "a value was expected");
    if (type == ondemand::json_type::array || type == ondemand::json_type::object) {
      ondemand::value root;
      if (document.get_value().get(root)) return at(document.current_location(), "a container has no end");
      if (auto read = value(root, 1); !read) return read;
    } else if (type == ondemand::json_type::string) {
      std::string_view string;
      if (document.get_string().get(string)) return broken(first(), kBadEscape);
      add(JsonKind::string, string, first());
    } else {
      // simdjson would ignore text after a number; here the number must be the whole text.
      return token(type, without_trailing_space(text().substr(first())));
    }
    const char* rest = nullptr;
    if (!document.current_location().get(rest)) return broken(offset(rest), "text follows the value");
    return {};
  }

 private:
  static constexpr std::string_view kBadEscape = "a string that begins here holds an escape that does not exist";

  std::string_view text() const noexcept { return {memory_.text.data(), size_}; }

  std::size_t offset(const char* place) const noexcept {
    const std::ptrdiff_t distance = place - memory_.text.data();
    return std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(distance, 0)), size_);
  }

  Error at(simdjson::simdjson_result<const char*> place, std::string_view sentence) const {
    const char* found = nullptr;
    return broken(std::move(place).get(found) ? size_ : offset(found), sentence);
  }

  std::size_t first() const noexcept { return std::min(text().find_first_not_of(" \t\r\n"), size_); }

  Result<void> token(ondemand::json_type type, std::string_view token) {
    const std::size_t place = offset(token.data());
    switch (type) {
      case ondemand::json_type::null:
        if (token != "null") break;
        add(JsonKind::null, token, place);
        return {};
      case ondemand::json_type::boolean:
        if (token != "true" && token != "false") break;
        add(JsonKind::boolean, token, place);
        return {};
      default:
        if (!is_number(token)) return broken(place, "a number is not written as JSON writes it");
        add(JsonKind::number, token, place);
        return {};
    }
    return broken(place, "a word is neither true, false nor null");
  }

  Result<void> value(ondemand::value value, std::size_t depth) {
    const std::string_view raw = value.raw_json_token();
    const std::size_t place = offset(raw.data());
    ondemand::json_type type{};
    if (value.type().get(type)) return broken(place, "a value was expected");
    switch (type) {
      case ondemand::json_type::array:
      case ondemand::json_type::object: {
        if (depth > bounds::json_depth_max) {
          return broken(place, "the nesting is deeper than " + std::to_string(bounds::json_depth_max) + " levels");
        }
        const std::size_t index = memory_.nodes.size();
        const bool is_array = type == ondemand::json_type::array;
        add(is_array ? JsonKind::array : JsonKind::object, {}, place);
        auto read = is_array ? array(value, depth) : object(value, depth);
        memory_.nodes[index].end = static_cast<std::uint32_t>(memory_.nodes.size());
        if (!read || is_array) return read;
        return no_key_twice(index);
      }
      case ondemand::json_type::string: {
        std::string_view string;
        if (value.get_string().get(string)) return broken(place, kBadEscape);
        add(JsonKind::string, string, place);
        return {};
      }
      default:
        return token(type, without_trailing_space(raw));
    }
  }

  Result<void> array(ondemand::value& value, std::size_t depth) {
    const char* const start = value.raw_json_token().data();
    ondemand::array array;
    if (value.get_array().get(array)) return broken(offset(start), "an array that begins here is not complete");
    for (auto item : array) {
      ondemand::value child;
      if (std::move(item).get(child)) return broken(offset(start), "an array that begins here lacks a ',' or its ']'");
      if (auto read = this->value(child, depth + 1); !read) return read;
    }
    return {};
  }

  Result<void> object(ondemand::value& value, std::size_t depth) {
    const char* const start = value.raw_json_token().data();
    constexpr std::string_view kFlaw = "an object that begins here lacks a ',', a ':', a \"key\" or its '}'";
    ondemand::object object;
    if (value.get_object().get(object)) return broken(offset(start), kFlaw);
    for (auto member : object) {
      ondemand::field field;
      if (std::move(member).get(field)) return broken(offset(start), kFlaw);
      std::string_view key;
      const std::size_t place = offset(field.key().raw() - 1);
      if (field.unescaped_key().get(key)) return broken(place, kBadEscape);
      add(JsonKind::string, key, place);
      if (auto read = this->value(field.value(), depth + 1); !read) return read;
    }
    return {};
  }

  // Sorts the keys, so that an object with a hundred thousand keys is not quadratic; a few are compared directly.
  Result<void> no_key_twice(std::size_t object) {
    constexpr std::size_t kFew = 8;
    auto& keys = memory_.keys;
    keys.clear();
    bool seen = false;
    for (std::size_t i = object + 1; i < memory_.nodes[object].end; i = memory_.nodes[i + 1].end) {
      const std::string_view key = memory_.nodes[i].text;
      for (std::size_t k = 0; k < keys.size() && k < kFew; ++k) seen = seen || keys[k].first == key;
      keys.emplace_back(key, memory_.nodes[i].offset);
    }
    if (!seen && keys.size() <= kFew) return {};
    std::sort(keys.begin(), keys.end());
    const auto twice =
        std::adjacent_find(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == keys.end()) return {};
    return broken(std::next(twice)->second, "the key " + quote(twice->first) + " is written twice in one object");
  }

  void add(JsonKind kind, std::string_view text, std::size_t place) {
    const auto end = static_cast<std::uint32_t>(memory_.nodes.size() + 1);
    memory_.nodes.push_back({text, end, static_cast<std::uint32_t>(place), kind});
  }

  Memory& memory_;
  std::size_t size_;
};

// The fast path for typical texts such as {"limit":"orders","id":"alice","cost":2}: objects of strings without escapes,
// numbers, literals and such objects. simdjson's two passes over thirty bytes take four times as long. Everything else,
// and every error, is left to Parse, which produces the same nodes.
class JsonReader::PlainObject {
 public:
  explicit PlainObject(Memory& memory) noexcept : memory_(memory), text_(memory.text) {}

  // Returns false for any other text; the nodes must be discarded.
  bool read() {
    skip_space();
    if (!take_object(1)) return false;
    skip_space();
    return at_ == text_.size();
  }

 private:
  static constexpr std::size_t kDepthMax = 4;
  static constexpr std::size_t kMembersMax = 16;  // each key is compared with all previous ones

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) noexcept {
    const bool there = peek() == c;
    at_ += there ? 1 : 0;
    return there;
  }
  void skip_space() noexcept {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }

  bool take_object(std::size_t depth) {
    const std::size_t object = memory_.nodes.size();
    add(JsonKind::object, {}, at_);
    if (!take('{') || depth > kDepthMax) return false;
    skip_space();
    if (!take('}') && !take_members(object, depth)) return false;
    memory_.nodes[object].end = static_cast<std::uint32_t>(memory_.nodes.size());
    return true;
  }

  bool take_members(std::size_t object, std::size_t depth) {
    for (std::size_t count = 0; count < kMembersMax; ++count) {
      const std::size_t key = memory_.nodes.size();
      if (!take_string() || is_there_before(object, key)) return false;
      skip_space();
      if (!take(':')) return false;
      skip_space();
      if (!take_value(depth)) return false;
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return false;
      skip_space();
    }
    return false;
  }

  bool is_there_before(std::size_t object, std::size_t key) const noexcept {
    for (std::size_t i = object + 1; i < key; i = memory_.nodes[i + 1].end) {
      if (memory_.nodes[i].text == memory_.nodes[key].text) return true;
    }
    return false;
  }

  bool take_string() {
    const std::size_t begin = at_;
    if (!take('"')) return false;
    while (at_ < text_.size() && JsonWriter::is_plain(text_[at_])) ++at_;
    add(JsonKind::string, text_.substr(begin + 1, at_ - begin - 1), begin);
    return take('"');
  }

  bool take_value(std::size_t depth) {
    if (peek() == '"') return take_string();
    if (peek() == '{') return take_object(depth + 1);
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_in_token(text_[at_])) ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    if (is_number(token)) {
      add(JsonKind::number, token, begin);
    } else if (token == "true" || token == "false") {
      add(JsonKind::boolean, token, begin);
    } else if (token == "null") {
      add(JsonKind::null, token, begin);
    } else {
      return false;
    }
    return true;
  }

  static constexpr bool is_in_token(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'E';
  }

  void add(JsonKind kind, std::string_view text, std::size_t place) {
    const auto end = static_cast<std::uint32_t>(memory_.nodes.size() + 1);
    memory_.nodes.push_back({text, end, static_cast<std::uint32_t>(place), kind});
  }

  Memory& memory_;
  std::string_view text_;
  std::size_t at_ = 0;
};

JsonReader::JsonReader() : memory_(std::make_unique<Memory>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

Result<JsonValue> JsonReader::read(std::string_view text) {
  constexpr std::size_t kPlainBytesMax = 1024;
  if (text.size() > kPlainBytesMax) return read_any(text);
  Memory& memory = *memory_;
  memory.nodes.clear();
  memory.text.assign(text);
  return PlainObject(memory).read() ? JsonValue(memory.nodes.data(), 0) : read_any(text);
}

Result<JsonValue> JsonReader::read_any(std::string_view text) {
  if (text.size() > bounds::json_bytes_max) {
    return Error{Fault::too_large, "the text has " + std::to_string(text.size()) + " bytes; at most " +
                                       std::to_string(bounds::json_bytes_max) + " are read"};
  }
  Memory& memory = *memory_;
  memory.nodes.clear();
  memory.text.assign(text);
  memory.text.append(simdjson::SIMDJSON_PADDING, ' ');
  if (auto read = Parse(memory, text.size()).document(); !read) return read.error();
  return JsonValue(memory.nodes.data(), 0);
}

JsonWriter& JsonWriter::key(std::string_view key) {
  string(key);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  out_ += '"';
  for (std::size_t i = 0; i < text.size();) {
    std::size_t run = i;
    while (run < text.size() && is_plain(text[run])) ++run;
    out_.append(text, i, run - i);
    i = run;
    if (i == text.size()) break;
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text[i++];
    } else if (c < 0x20 || c == 0x7F) {
      out_ += "\\u00";
      append_hex(c, out_);
      ++i;
    } else if (const std::size_t length = utf8_length(text.substr(i)); length > 0) {
      out_.append(text, i, length);
      i += length;
    } else {
      out_ += kReplacement;
      ++i;
    }
  }
  out_ += '"';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::number(std::int64_t number) {
  char digits[24];
  const auto [end, fault] = std::to_chars(digits, digits + sizeof digits, number);
  static_cast<void>(fault);  // 24 characters are enough for every int64
  return token({digits, static_cast<std::size_t>(end - digits)});
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::token(std::string_view text) {
  separate();
  out_ += text;
  comma_ = true;
  return *this;
}

void JsonWriter::separate() {
  if (comma_) out_ += ',';
}

}  // namespace weir
