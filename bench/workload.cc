#include "bench/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "weir/base/assert.h"

namespace weir::bench {
namespace {

// Ranks 1..n with probability proportional to rank^-s, by rejection-inversion (Hörmann and Derflinger, 1996).
class Zipf {
 public:
  Zipf(std::uint64_t n, double s) : s_(s), low_(area(1.5) - 1), high_(area(static_cast<double>(n) + 0.5)), n_(n) {
    squeeze_ = 2 - inverse(area(2.5) - std::pow(2, -s_));
  }

  template <class Random>
  std::uint64_t operator()(Random& random) {
    std::uniform_real_distribution<double> between(low_, high_);
    for (;;) {
      const double u = between(random);
      const double x = inverse(u);
      const auto k = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(x + 0.5), 1, n_);
      const auto rank = static_cast<double>(k);
      if (rank - x <= squeeze_ || u >= area(rank + 0.5) - std::pow(rank, -s_)) return k;
    }
  }

 private:
  // The integral of x^-s, and its inverse.
  double area(double x) const { return (std::pow(x, 1 - s_) - 1) / (1 - s_); }
  double inverse(double a) const { return std::pow(a * (1 - s_) + 1, 1 / (1 - s_)); }

  double s_;
  double low_;
  double high_;
  double squeeze_ = 0;
  std::uint64_t n_;
};

// A prime larger than any number of keys: multiplying by it permutes the ids.
constexpr std::uint64_t kScatter = 2'654'435'761;

}  // namespace

std::string name_of(Draw draw) {
  return draw == Draw::zipf ? "Zipf 0.99" : "uniform";
}

std::string name_of_count(std::uint64_t count) {
  if (count % 1'000'000 == 0) return std::to_string(count / 1'000'000) + "M";
  if (count % 1'000 == 0) return std::to_string(count / 1'000) + "k";
  return std::to_string(count);
}

template <>
Text key_of<Text>(std::uint64_t id) noexcept {
  Text text;
  std::memcpy(text.data(), "user:00000000000", text.size());
  for (std::size_t i = text.size(); id != 0; id /= 10) text[--i] = static_cast<char>('0' + id % 10);
  return text;
}

template <>
Mixed key_of<Mixed>(std::uint64_t id) noexcept {
  Mixed x = id + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return x != 0 ? x : 1;
}

template <class K>
std::vector<K> make_stream(Draw draw, std::uint64_t keys) {
  std::mt19937_64 random(keys);
  std::uniform_int_distribution<std::uint64_t> uniform(1, keys);
  Zipf zipf(keys, kZipfExponent);
  std::vector<K> stream;
  stream.reserve(kStreamLength);
  for (std::size_t i = 0; i < kStreamLength; ++i) {
    const std::uint64_t rank = draw == Draw::zipf ? zipf(random) : uniform(random);
    stream.push_back(key_of<K>(rank * kScatter % keys));
  }
  return stream;
}

template std::vector<Text> make_stream<Text>(Draw, std::uint64_t);
template std::vector<Mixed> make_stream<Mixed>(Draw, std::uint64_t);

Allowance::Allowance(std::uint64_t keys, std::size_t draws)
    : interval_(keys >= 100'000 ? std::chrono::minutes{10} : std::chrono::seconds{10}),
      tokens_(std::max<Count>(static_cast<Count>(draws / keys) * 2, 50)) {}

Limit Allowance::in_round(Count round) const {
  const Result<Limit> limit = Limit::make(1, interval_, tokens_ * (round + 1));
  WEIR_ASSERT(limit.has_value());
  return *limit;
}

}  // namespace weir::bench
