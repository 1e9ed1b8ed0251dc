// The state of a query during Policy::resolve(). Only for its sources.
#pragma once

#include <string_view>

#include "weir/policy/policy.h"

namespace weir {

struct Policy::Asking {
  Mode mode;
  const Known& known;
  Now now;
  Time published;
  const ServiceAnswers* answers;
  bool wants_backend = false;

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
