// For tests and fuzzers: an output without a connection.
#pragma once

#include <string>
#include <utility>

#include "weir/protocol/session.h"

namespace weir {

// An output that only keeps what is written.
class KeptOutput final : public Output {
 public:
  KeptOutput() noexcept : Output(text_) {}
  const std::string& text() const noexcept { return text_; }
  // True once since the last call if the session called touch().
  bool take_touched() noexcept { return std::exchange(touched_, false); }

 private:
  void wake() override {}

  std::string text_;
};

}  // namespace weir
