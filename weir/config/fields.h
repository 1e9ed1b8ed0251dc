// The shape of the configuration file: one table of fields. The parser (check.h), the environment's names
// (environment.h), `config show`, and the JSON schema (schema.h) all come from it, so they cannot disagree.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace weir::config {

// What a scalar must be. Each has one checking function in check.cc and one line in schema.cc.
enum class Type : unsigned char {
  text,
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
  map,          // any name to one
  map_or_path,  // the same, or the path of a file that holds it
};

struct Field {
  std::string_view name;
  Type type;
  Shape shape = Shape::one;
  std::string_view fallback = {};      // the default as it would be written; empty: nothing, or zero of its kind
  std::string_view doc = {};           // one sentence
  std::span<const Field> fields = {};  // of a section
  std::string_view choices = {};       // separated by spaces
  // Also accepted as it stands; one that ends in ':' begins what is accepted. Of a section: a text alone is accepted
  // too and stands for this field of it.
  std::string_view word = {};
  bool required = false;
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// The whole file.
std::span<const Field> file_fields();

// Fields of one entry of `limits`, `names`, `overrides` and `schedule`.
std::span<const Field> limit_fields();
std::span<const Field> name_fields();
std::span<const Field> override_fields();
std::span<const Field> schedule_fields();

// Null if there is none.
const Field* find_field(std::span<const Field> fields, std::string_view name);

}  // namespace weir::config
