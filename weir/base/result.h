// A value or an Error. Member names follow std::expected, which can replace this file from GCC 13 on. A denial is not
// an Error: it is a Decision (core/decision.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "weir/base/assert.h"

namespace weir {

// What the caller can do about an error.
enum class Fault {
  invalid,      // the input is invalid; a retry will fail again
  too_large,    // the input exceeds a limit
  unknown,      // the input names something that does not exist
  timeout,      // no answer in time; the operation may have been applied
  unavailable,  // not now; try again later
  overloaded,   // too busy; nothing was applied, try again in a second
  internal,     // our own failure; the detail never leaves the process
};

struct Error {
  Fault fault;
  std::string detail;  // one sentence that names the field, the value and the rule
  int code = 0;        // the configured status to use instead of the protocol's own; 0: none
  // A machine-readable code where a protocol has several for one fault ("missing_key"). Has static storage duration.
  // Empty means the protocol's default.
  std::string_view word = {};

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  constexpr Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: `return value;` reads best
  constexpr Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: likewise `return Error{…};`

  constexpr bool has_value() const noexcept { return state_.index() == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  constexpr const T& value() const& {
    WEIR_ASSERT(has_value());
    return *std::get_if<0>(&state_);
  }
  constexpr T& value() & {
    WEIR_ASSERT(has_value());
    return *std::get_if<0>(&state_);
  }
  constexpr T&& value() && {
    WEIR_ASSERT(has_value());
    return std::move(*std::get_if<0>(&state_));
  }
  constexpr const T& operator*() const& { return value(); }
  constexpr T& operator*() & { return value(); }
  constexpr T&& operator*() && { return std::move(*this).value(); }
  constexpr const T* operator->() const { return &value(); }
  constexpr T* operator->() { return &value(); }

  constexpr const Error& error() const {
    WEIR_ASSERT(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: `return Error{…};` reads best

  bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return has_value(); }
  const Error& error() const {
    WEIR_ASSERT(failed_);
    return error_;
  }

 private:
  bool failed_ = false;
  Error error_{Fault::internal, {}};
};

}  // namespace weir
