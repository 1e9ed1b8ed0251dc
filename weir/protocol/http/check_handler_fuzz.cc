// Any bytes, in any pieces, answered in any order: no crash, the same bytes out, and every question asked once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/http/check_handler.h"

namespace {

class CheckOutput final : public weir::Output {
 public:
  CheckOutput() : Output(text_) {}

 private:
  void wake() override {}
  std::string text_;
};

weir::Result<weir::Answer> answer_to(const weir::Asked& asked) {
  const weir::Query& query = asked.query;
  weir::Count cost = 1;
  std::size_t count = 1;
  if (const auto* const own = std::get_if<weir::OwnBucket>(&query.subject)) {
    WEIR_ASSERT(!own->key.empty() && own->limit);
    cost = own->cost;
  } else if (const auto* const facts = std::get_if<weir::RequestFacts>(&query.subject)) {
    WEIR_ASSERT(!facts->attributes.empty() && facts->attributes.size() <= weir::bounds::attributes_max);
    cost = facts->cost.value_or(1);
  } else if (const auto* const named = std::get_if<weir::NamedCharges>(&query.subject)) {
    WEIR_ASSERT(!named->charges.empty());
    for (const weir::NamedCharge& charge : named->charges) WEIR_ASSERT(charge.cost >= 0);
    cost = named->charges[0].cost;
    count = named->charges.size();
  }
  if (cost % 5 == 4) return weir::Error{weir::Fault::unknown, "no such limit"};
  weir::Answer answer;
  for (std::size_t i = 0; i < count; ++i) {
    const bool allowed = cost % 3 != 2;
    const weir::Duration wait{allowed ? 0 : 5};
    answer.verdict.all.push_back(weir::Decision{allowed, 10, 5, wait, std::chrono::milliseconds{50}});
    answer.verdict.allowed = answer.verdict.allowed && allowed;
    answer.labels[i].limit = "a-limit";
  }
  return answer;
}

// What comes out when the bytes come in such pieces and the answers are given so many at a time, last first.
std::string talk(std::string_view bytes, std::size_t piece, std::size_t answers) {
  static weir::Health health;
  static weir::CheckHandler handler(health);
  static weir::http::HttpShared shared;
  CheckOutput output;
  weir::http::Http1Session session(shared, handler, {output, {}, {}, {}, false});
  std::vector<std::pair<std::uint64_t, weir::Result<weir::Answer>>> owed;
  const auto collect = [&](const weir::Queries& queries) {
    WEIR_ASSERT(queries.all().size() <= weir::bounds::queries_per_turn_max);
    for (const weir::Asked& question : queries.all()) owed.emplace_back(question.token, answer_to(question));
    return !queries.all().empty();
  };
  const auto answer_some = [&] {
    for (std::size_t i = 0; i < answers && !owed.empty(); ++i) {
      session.reply(owed.back().first, owed.back().second);
      owed.pop_back();
    }
  };
  std::size_t used = 0;
  std::size_t end = std::min(piece, bytes.size());
  while (!session.finished()) {
    const std::unique_ptr<char[]> block(new char[end - used]);
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.begin() + static_cast<std::ptrdiff_t>(end),
              block.get());
    weir::Queries queries;
    const auto taken = session.receive({block.get(), end - used}, queries, {});
    bool asked = collect(queries);
    if (!taken) {
      WEIR_ASSERT(owed.empty());
      return output.bytes + "!";
    }
    WEIR_ASSERT(*taken <= end - used);
    used += *taken;
    if (session.has_more()) {
      weir::Queries more;
      session.resume(more, {});
      asked = collect(more) || asked;
    }
    const bool idle = *taken == 0 && !asked;
    if (idle && end == bytes.size() && owed.empty()) return output.bytes;
    if (idle) end = std::min(end + piece, bytes.size());
    answer_some();
  }
  WEIR_ASSERT(owed.empty());
  WEIR_ASSERT(shared.exchanges->open_count() == 0);
  return output.bytes + "!";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = talk(bytes, bytes.size() + 1, SIZE_MAX);
  WEIR_ASSERT(whole == talk(bytes, 1 + data[0] % 64, 1 + data[1] % 8));
  return 0;
}
