// Any bytes to a session, split anywhere and answered in any order: the peer reads the same, and nothing breaks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/protocol/testing/kept_output.h"

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

 private:
  std::uint64_t state_;
};

// Returns different answers for different queries, and an error now and then.
weir::Result<weir::Answer> decide(const weir::Query& query) {
  const auto* const named = std::get_if<weir::NamedCharges>(&query.subject);
  const auto* const own = std::get_if<weir::OwnBucket>(&query.subject);
  WEIR_ASSERT(named != nullptr || own != nullptr);
  const weir::Count cost = named != nullptr ? named->charges[0].cost : own->cost;
  const std::string_view who = named != nullptr ? named->charges[0].id : own->key;
  if (who.size() % 7 == 6) return weir::Error{weir::Fault::unavailable, "no\r\nstore"};
  weir::Answer answer;
  answer.verdict.all.push_back(weir::Decision{cost < 9, cost, 100, weir::Duration{cost}, weir::kNever});
  answer.verdict.allowed = cost < 9;
  answer.verdict.forgotten = who.size() % 2;
  return answer;
}

// Returns what the peer reads when the dice choose how its bytes are split and the order of answers; without dice, the
// bytes are whole and the answers in order.
std::string talk(const weir::RespOptions& options, std::string_view bytes, Dice* dice) {
  weir::KeptOutput output;
  weir::RespSession session(output, options);
  weir::Queries queries;
  std::vector<std::pair<std::uint64_t, weir::Result<weir::Answer>>> owed;
  const std::string& out = output.text();
  std::size_t begin = 0;
  std::size_t end = 0;
  while (!session.finished() && (end < bytes.size() || !owed.empty() || begin < end)) {
    const std::size_t before = begin;
    const std::size_t written = out.size();
    if (end < bytes.size()) end += dice == nullptr ? bytes.size() : std::min(dice->below(40) + 1, bytes.size() - end);
    const std::unique_ptr<char[]> block(new char[end - begin]);
    bytes.copy(block.get(), end - begin, begin);
    queries.clear();
    const weir::Result<std::size_t> taken = session.receive({block.get(), end - begin}, queries, weir::Now{});
    WEIR_ASSERT(queries.all().size() <= weir::bounds::queries_per_turn_max);
    for (const weir::Asked& asked : queries.all()) owed.emplace_back(asked.token, decide(asked.query));
    if (taken) {
      WEIR_ASSERT(*taken <= end - begin);
      begin += *taken;
    } else {
      WEIR_ASSERT(owed.empty() && session.finished());
    }
    const bool stuck = begin == before && end == bytes.size() && out.size() == written;
    if (stuck && owed.empty()) break;
    while (!owed.empty() && (dice == nullptr || stuck || dice->below(3) > 0)) {
      const std::size_t i = dice == nullptr ? 0 : dice->below(owed.size());
      session.reply(owed[i].first, owed[i].second);
      owed.erase(owed.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::RespOptions open{};
  static const weir::RespOptions locked{"pw"};
  if (size == 0) return 0;
  const weir::RespOptions& options = data[0] % 4 == 0 ? locked : open;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Dice dice(size * 257 + data[0]);
  const std::string whole = talk(options, bytes, nullptr);
  WEIR_ASSERT(talk(options, bytes, &dice) == whole);

  // The output must consist of whole replies.
  weir::resp::Reply reply;
  for (std::size_t at = 0; at < whole.size(); at += reply.size()) {
    WEIR_ASSERT(reply.parse(std::string_view(whole).substr(at)) == weir::resp::Parsed::done);
  }
  return 0;
}
