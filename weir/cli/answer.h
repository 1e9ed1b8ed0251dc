// A server's JSON as the commands read it: a tree that keeps numbers as written and members in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::cli {

class Answer {
 public:
  enum class Kind : unsigned char { null, boolean, number, string, array, object };

  // Returns nothing if the text is not one JSON value or is nested deeper than bounds::json_depth_max.
  static std::optional<Answer> read(std::string_view json);

  Answer() = default;
  Answer(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  // A string's characters, a number as written, "true" or "false"; empty for null, arrays and objects.
  const std::string& text() const noexcept { return text_; }
  bool is_true() const noexcept { return kind_ == Kind::boolean && text_ == "true"; }
  // 0 if it is not a number.
  double number() const noexcept;
  // A whole number of at least 0; otherwise 0.
  std::uint64_t count() const noexcept;

  // A member, or a null value if there is none.
  const Answer& operator[](std::string_view name) const noexcept;
  // The items of an array or the values of an object; empty for anything else.
  const std::vector<Answer>& items() const noexcept { return items_; }

 private:
  friend class AnswerReader;
  Kind kind_ = Kind::null;
  std::string text_;
  std::vector<std::string> names_;  // of an object's values
  std::vector<Answer> items_;
};

}  // namespace weir::cli
