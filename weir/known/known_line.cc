#include "weir/known/known_line.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir {
namespace {

bool is_plain(char c) noexcept {
  return is_letter(c) || is_digit(c) || std::string_view("._:/-@+").find(c) != std::string_view::npos;
}

void write_text(std::string_view name, std::string_view value, std::string& out) {
  out.append(" ").append(name).append("=");
  for (const char c : value) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    out += '%';
    append_hex(static_cast<unsigned char>(c), out);
  }
}

void write_number(std::string_view name, std::int64_t value, std::string& out) {
  out.append(" ").append(name).append("=");
  append_integer(value, out);
}

Error bad_line(std::string reason) {
  return Error{Fault::invalid, std::move(reason)};
}

// The fields of one line. Each is taken once; a field that is left over is an error.
class Fields {
 public:
  static Result<Fields> parse(std::string_view text) {
    Fields fields;
    while (!text.empty()) {
      if (text.front() != ' ') return bad_line("fields are separated by one space");
      const std::size_t end = std::min(text.find(' ', 1), text.size());
      const std::string_view field = text.substr(1, end - 1);
      text.remove_prefix(end);
      const std::size_t equals = field.find('=');
      if (equals == std::string_view::npos) return bad_line("a field has no value");
      std::string value;
      if (!decode(field.substr(equals + 1), value))
        return bad_line("a field's value has an invalid character or escape");
      if (!fields.all_.emplace(field.substr(0, equals), std::move(value)).second)
        return bad_line("a field occurs twice");
    }
    return fields;
  }

  std::optional<std::string> take(std::string_view name) {
    const auto found = all_.find(name);
    if (found == all_.end()) return std::nullopt;
    std::optional<std::string> value = std::move(found->second);
    all_.erase(found);
    return value;
  }
  std::string text(std::string_view name) { return take(name).value_or(""); }

  // Returns false if the field exists and is not a number.
  template <class Number>
  bool number(std::string_view name, std::optional<Number>& out) {
    const std::optional<std::string> value = take(name);
    if (!value) return true;
    const Result<std::int64_t> parsed = parse_integer(*value);
    if (!parsed) return false;
    out = make<Number>(*parsed);
    return true;
  }

  bool empty() const noexcept { return all_.empty(); }

 private:
  template <class Number>
  static Number make(std::int64_t value) {
    if constexpr (std::is_same_v<Number, Wall>) {
      return Wall{Duration{value}};
    } else {
      return Number{value};
    }
  }

  static bool decode(std::string_view text, std::string& out) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_plain(text[i])) {
        out += text[i];
        continue;
      }
      const std::optional<char> byte = percent_escape(text.substr(i));
      if (!byte) return false;
      out += *byte;
      i += 2;
    }
    return true;
  }

  std::map<std::string, std::string, std::less<>> all_;
};

bool is_mark(std::string_view text) noexcept {
  return text.empty() || text.size() == bounds::hash_mark_bytes;
}

Result<Adjustment> read_adjustment(Fields& fields) {
  Adjustment one;
  std::optional<Wall> expires;
  one.limit = fields.text("limit");
  one.id = fields.text("id");
  one.added_by = fields.text("by");
  one.hash_mark = fields.text("hashed");
  const bool numbers = fields.number("burst", one.burst) && fields.number("count", one.count) &&
                       fields.number("period", one.period) && fields.number("expires", expires);
  if (!numbers || !expires || one.limit.empty() || one.id.empty()) return bad_line("an adjustment is incomplete");
  if (one.limit.size() > bounds::name_bytes_max || one.id.size() > bounds::key_bytes_max ||
      one.added_by.size() > bounds::added_by_bytes_max) {
    return bad_line("a text of an adjustment is too long");
  }
  if (!is_mark(one.hash_mark)) return bad_line("an adjustment's hash-key mark has the wrong length");
  one.expires = *expires;
  return one;
}

Result<AccessEntry> read_entry(AccessEntry::List list, Fields& fields) {
  AccessEntry entry;
  entry.list = list;
  if (const std::optional<std::string> ip = fields.take("ip")) {
    const Result<IpPrefix> prefix = IpPrefix::parse(*ip);
    if (!prefix) return bad_line("an entry's ip is not an address or a prefix");
    entry.ip = *prefix;
  }
  entry.apikey = fields.text("apikey");
  entry.limit = fields.text("limit");
  entry.id = fields.text("id");
  entry.reason = fields.text("reason");
  entry.added_by = fields.text("by");
  entry.hash_mark = fields.text("hashed");
  if (!is_mark(entry.hash_mark)) return bad_line("an entry's hash-key mark has the wrong length");
  if (!fields.number("expires", entry.expires)) return bad_line("an entry's expires is not a number");
  if (const Result<void> good = check(entry); !good) return good.error();
  return entry;
}

}  // namespace

std::string print_line(const Adjustment& adjustment) {
  std::string out = "adjust";
  write_text("limit", adjustment.limit, out);
  write_text("id", adjustment.id, out);
  if (adjustment.burst) write_number("burst", *adjustment.burst, out);
  if (adjustment.count) write_number("count", *adjustment.count, out);
  if (adjustment.period) write_number("period", adjustment.period->count(), out);
  write_number("expires", adjustment.expires.time_since_epoch().count(), out);
  write_text("by", adjustment.added_by, out);
  if (!adjustment.hash_mark.empty()) write_text("hashed", adjustment.hash_mark, out);
  return out;
}

std::string print_line(const AccessEntry& entry, bool block) {
  std::string out(block ? std::string_view("block") : print(entry.list));
  if (entry.ip) write_text("ip", entry.ip->print(), out);
  if (!entry.apikey.empty()) write_text("apikey", entry.apikey, out);
  if (!entry.limit.empty()) write_text("limit", entry.limit, out);
  if (!entry.id.empty()) write_text("id", entry.id, out);
  write_text("reason", entry.reason, out);
  if (entry.expires) write_number("expires", entry.expires->time_since_epoch().count(), out);
  write_text("by", entry.added_by, out);
  if (!entry.hash_mark.empty()) write_text("hashed", entry.hash_mark, out);
  return out;
}

Result<KnownLine> parse_line(std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  Result<Fields> fields = Fields::parse(line.substr(space));
  if (!fields) return fields.error();
  KnownLine read;
  read.block = word == "block";
  if (word == "adjust") {
    Result<Adjustment> one = read_adjustment(*fields);
    if (!one) return one.error();
    read.what = std::move(*one);
  } else if (word == "allow" || word == "deny" || read.block) {
    Result<AccessEntry> one = read_entry(word == "allow" ? AccessEntry::List::allow : AccessEntry::List::deny, *fields);
    if (!one) return one.error();
    read.what = std::move(*one);
  } else {
    return bad_line("a line starts with an unknown word");
  }
  if (!fields->empty()) return bad_line("a line has an unknown field");
  return read;
}

}  // namespace weir
