// Sample values for the tests of this folder.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "weir/base/time.h"
#include "weir/known/known.h"

namespace weir {

inline constexpr Wall kNow{std::chrono::seconds{1000}};

inline Adjustment adjustment(std::string id, Wall expires = kNow + std::chrono::hours{1}) {
  Adjustment one;
  one.limit = "orders";
  one.id = std::move(id);
  one.burst = 50;
  one.expires = expires;
  return one;
}

}  // namespace weir
