// A query on its way through Policy::resolve(), for its sources only.
#pragma once

#include <string_view>

#include "weir/policy/policy.h"

namespace weir {

struct Policy::Asking {
  Mode mode;
  const Known& known;
  Now now;
  Time published;

  bool decides() const noexcept { return mode == Mode::spend || mode == Mode::peek; }
};

struct Policy::Wanted {
  const NamedLimit& limit;
  const Identity& identity;
  Enforcement mode;
  Count cost;
  const Route* route;
  std::string_view tier;  // empty: none
  bool peeks = false;     // Charge::peeks
};

}  // namespace weir
