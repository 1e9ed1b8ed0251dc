// The structure of the configuration file: one table with one row per option. A row has the option's name, type,
// default and documentation, when a change takes effect, and which member of Settings it fills. The checker (check.h),
// the environment (environment.h), Settings (settings_reader.h), `config show`, `config diff`, the JSON schema
// (schema.h) and the reference page (reference.h) all use this table, so they cannot disagree.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weir/base/time.h"

namespace weir::config {

// The type of a scalar. Each has one check in check.cc and one line in schema.cc.
enum class Type : unsigned char {
  text,
  address,     // text: "127.0.0.1:8080", "unix:/run/x.sock"; listen.h checks it
  secret,      // text that is never shown; "env:NAME" and "file:/path" are looked up
  flag,        // true or false
  integer,     // within min..max
  duration,    // min..max in nanoseconds
  rate,        // "100/s"
  size,        // "64KiB"; within min..max
  choice,      // one of `choices`
  choice_any,  // the same in any case
  prefix,      // an address or a CIDR
  instant,     // "2027-01-01T00:00:00Z"
  key_source,  // "header:x-tenant-id"
  id_format,   // "regId:domain"
  quota,       // "100000/month"
  zone,        // "Europe/London"
  days,        // "mon-fri", "sat,sun"
  hours,       // "09:00-18:00"
  share,       // "1/4"
  section,     // a map with `fields`
};

enum class Shape : unsigned char {
  one,
  list,
  one_or_list,
  map,          // from any name to one value
  map_or_path,  // the same, or the path of a file that holds it
};

// When a changed value takes effect.
enum class Applies : unsigned char {
  as_section,  // the same as its section; at the top level: on_reload
  on_reload,
  to_new_connections,  // on reload; open connections keep their state, e.g. stay authenticated
  on_restart,
};

struct Field;

// One field's value from the file, checked, or its default.
struct Given {
  const Field& field;
  std::string text;                // of Shape::one
  std::vector<std::string> items;  // of every other shape
};

// Converts the value to the member's type. REQUIRES: the value was checked.
void assign(const Given& given, std::string& to);
void assign(const Given& given, std::vector<std::string>& to);
void assign(const Given& given, bool& to);
void assign(const Given& given, int& to);
void assign(const Given& given, std::int64_t& to);
void assign(const Given& given, Duration& to);
std::size_t choice_index(const Given& given);
// Enumerators have the order of the choices.
template <class E>
requires std::is_enum_v<E>
void assign(const Given& given, E& to) {
  to = static_cast<E>(choice_index(given));
}

// Returns the member M of the struct that `section` points to.
template <class S, class T>
T& member_of(void* section, T S::*member) {
  return static_cast<S*>(section)->*member;
}

template <auto M>
void set_member(const Given& given, void* section) {
  assign(given, member_of(section, M));
}
// `read` may need members of the section that were filled before.
template <auto M, auto read>
void set_member_by(const Given& given, void* section) {
  member_of(section, M) = read(given, section);
}
template <auto M>
void copy_member(void* from_section, void* to_section) {
  member_of(to_section, M) = member_of(from_section, M);
}

template <class T>
void* open_entry(T& member) {
  return &member;
}
template <class T>
void* open_entry(std::vector<T>& list) {
  return &list.emplace_back();
}
template <auto M>
void* open_member(void* section) {
  return open_entry(member_of(section, M));
}

// Copies a field's value to the struct that its section fills. The functions are null if it fills none.
struct Member {
  void (*set)(const Given& given, void* section) = nullptr;
  void (*copy)(void* from_section, void* to_section) = nullptr;
  // Of a section: the struct it fills. Of a list of sections: a new last entry.
  void* (*open)(void* section) = nullptr;
};

inline constexpr std::int64_t kNoMin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kNoMax = std::numeric_limits<std::int64_t>::max();

struct Field {
  std::string_view name;
  Type type;
  std::string_view doc;       // one sentence
  std::string_view fallback;  // the default in the syntax of the file; empty: none, or the type's zero
  Shape shape = Shape::one;
  std::span<const Field> fields = {};  // of a section
  std::string_view choices = {};       // separated by spaces
  // A word that is also accepted; if it ends in ':', any text with that prefix is. For a section: a scalar is also
  // accepted and sets this field of the section.
  std::string_view word = {};
  bool required = false;
  bool means_by_presence = false;  // an absent section differs from one with all defaults
  bool compared_whole = false;     // `config diff` compares each entry as a whole
  bool order_matters = false;      // of a list
  std::int64_t min = kNoMin;
  std::int64_t max = kNoMax;
  Applies when = Applies::as_section;
  Member member = {};

  constexpr Field(std::string_view called, Type kind, std::string_view sentence, std::string_view usual = {})
      : name(called), type(kind), doc(sentence), fallback(usual) {}

  // Returns the row with one more property. Defined before its uses: clang evaluates them as constants only then.
  template <class T>
  constexpr Field with(T Field::*property, std::type_identity_t<T> value) const {
    Field changed = *this;
    changed.*property = value;
    return changed;
  }

  // The same by name, so that the table reads as one line per option.
  constexpr Field as(Shape value) const { return with(&Field::shape, value); }
  constexpr Field of(std::span<const Field> value) const { return with(&Field::fields, value); }
  constexpr Field of(std::string_view value) const { return with(&Field::choices, value); }
  constexpr Field or_word(std::string_view value) const { return with(&Field::word, value); }
  constexpr Field must() const { return with(&Field::required, true); }
  constexpr Field optional() const { return with(&Field::means_by_presence, true); }
  constexpr Field whole() const { return with(&Field::compared_whole, true); }
  constexpr Field ordered() const { return with(&Field::order_matters, true); }
  constexpr Field at_least(std::int64_t value) const { return with(&Field::min, value); }
  constexpr Field between(std::int64_t low, std::int64_t high) const { return at_least(low).with(&Field::max, high); }
  constexpr Field applies(Applies value) const { return with(&Field::when, value); }
  constexpr Field saying(std::string_view value) const { return with(&Field::doc, value); }

  // Fills the member M: converts by its type, or with `read`.
  template <auto M>
  constexpr Field into() const {
    return with(&Field::member, {&set_member<M>, &copy_member<M>, nullptr});
  }
  template <auto M, auto read>
  constexpr Field into() const {
    return with(&Field::member, {&set_member_by<M, read>, &copy_member<M>, nullptr});
  }
  // For a section: its fields fill the struct M. For a list of sections: each adds an entry to the vector M.
  template <auto M>
  constexpr Field opens() const {
    return with(&Field::member, {nullptr, &copy_member<M>, &open_member<M>});
  }
};

// Returns the parts of a text between separators; empty for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);

// Returns the choice as the table spells it: "passThrough" for "PASSTHROUGH". Empty if there is no such choice.
std::string_view find_choice(const Field& field, std::string_view text);

// The whole file.
std::span<const Field> file_fields();

// Fields of one entry of `limits`, `names`, `overrides` and `schedule`.
std::span<const Field> limit_fields();
std::span<const Field> name_fields();
std::span<const Field> override_fields();
std::span<const Field> schedule_fields();

// Returns null if not found.
const Field* find_field(std::span<const Field> fields, std::string_view name);

}  // namespace weir::config
