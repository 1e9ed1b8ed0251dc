#include "weir/cli/answer.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "weir/base/bounds.h"

namespace weir::cli {

// Builds the tree from nlohmann's events, which have each number as written.
class AnswerReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return value({}); }
  bool boolean(bool given) override { return value({Answer::Kind::boolean, given ? "true" : "false"}); }
  bool number_integer(number_integer_t given) override { return value({Answer::Kind::number, std::to_string(given)}); }
  bool number_unsigned(number_unsigned_t given) override {
    return value({Answer::Kind::number, std::to_string(given)});
  }
  bool number_float(number_float_t, const string_t& written) override { return value({Answer::Kind::number, written}); }
  bool string(string_t& given) override { return value({Answer::Kind::string, std::move(given)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Answer::Kind::object); }
  bool key(string_t& name) override {
    open_.back().names_.push_back(std::move(name));
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Answer::Kind::array); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  Answer take() { return std::move(whole_); }

 private:
  bool value(Answer given) {
    (open_.empty() ? whole_ : open_.back().items_.emplace_back()) = std::move(given);
    return true;
  }
  bool open(Answer::Kind kind) {
    if (open_.size() >= bounds::json_depth_max) return false;
    open_.emplace_back(kind, std::string());
    return true;
  }
  bool close() {
    Answer done = std::move(open_.back());
    open_.pop_back();
    return value(std::move(done));
  }

  Answer whole_;
  std::vector<Answer> open_;  // from the outermost container in
};

std::optional<Answer> Answer::read(std::string_view json) {
  AnswerReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) return {};
  return reader.take();
}

double Answer::number() const noexcept {
  double value = 0;
  if (kind_ == Kind::number) std::from_chars(text_.data(), text_.data() + text_.size(), value);
  return value;
}

std::uint64_t Answer::count() const noexcept {
  std::uint64_t value = 0;
  if (kind_ == Kind::number) std::from_chars(text_.data(), text_.data() + text_.size(), value);
  return value;
}

const Answer& Answer::operator[](std::string_view name) const noexcept {
  static const Answer none;
  for (std::size_t i = 0; i < names_.size() && i < items_.size(); ++i) {
    if (names_[i] == name) return items_[i];
  }
  return none;
}

}  // namespace weir::cli
