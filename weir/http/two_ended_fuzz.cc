// A client and a session joined by two strings. The bytes decide the version, who moves, how many bytes pass, who
// stalls, which call is canceled and when the connection is cut. Whatever they decide, every buffer stays within its
// bound, every complete response is the request sent back, and every exchange and call ends once (two_ended_test.h).
#include <cstddef>
#include <cstdint>

#include "weir/http/two_ended_test.h"

namespace {

// Reads decisions from the bytes, and makes up the rest: every call has to end.
class Decisions {
 public:
  Decisions(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::size_t choose(std::size_t n) {
    if (n <= 1) return 0;
    std::size_t value = next();
    for (std::size_t most = 256; most < n; most *= 256) value = value * 256 + next();
    return value % n;
  }

 private:
  std::size_t next() {
    if (at_ < size_) return data_[at_++];
    made_up_ = made_up_ * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
    return made_up_ >> 56;
  }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
  std::uint64_t made_up_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const bool http2 = data[0] % 2 == 1;
  const bool breaks = data[0] % 4 >= 2;
  Decisions decisions(data + 1, size - 1);
  weir::http::TwoEnded pair(
      http2, [&](std::size_t n) { return decisions.choose(n); }, http2 ? 6 : 3);
  (void)pair.run(200'000, breaks);
  return 0;
}
