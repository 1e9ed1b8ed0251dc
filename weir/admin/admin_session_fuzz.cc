// Feeds arbitrary bytes to an admin session, whole and split in two: no crash, and the same responses.
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>

#include "weir/admin/admin_session.h"
#include "weir/admin/admin_shared_test.h"
#include "weir/base/assert.h"

namespace {

class NoBuckets final : public weir::BucketScan {
 public:
  void visit(std::string_view, Look, weir::Now, const Visit&, const Done& done) override { done(Step{}); }
  void forget(std::string_view, weir::Now, const Done& done) override { done(Step{}); }
};

// Returns when the background thread has run everything that was queued.
void finish_background_tasks(weir::admin::BackgroundTasks& background_tasks) {
  std::promise<void> reached;
  if (background_tasks.run([&reached] { reached.set_value(); })) reached.get_future().wait();
}

std::string talk(std::string_view first, std::string_view second) {
  NoBuckets bucket_scan;
  weir::admin::AdminFixture fixture(bucket_scan);
  weir::AdminSession session(fixture.shared(), "127.0.0.1");
  weir::Queries queries;
  std::string out;
  std::string pending;
  for (const std::string_view piece : {first, second}) {
    pending += piece;
    // Like a connection: repeats until nothing changes.
    for (bool more = true; more && !session.finished();) {
      queries.clear();
      const auto taken = session.receive(pending, queries, out);
      if (!taken) return out;
      pending.erase(0, *taken);
      for (const weir::Asked& asked : queries.all()) session.reply(asked.sequence, weir::Answer{}, out);
      for (int i = 0; i < 100 && session.working(); ++i) {
        finish_background_tasks(fixture.shared().background_tasks);
        queries.clear();
        session.wake(weir::Time{}, queries, out);
        for (const weir::Asked& asked : queries.all()) session.reply(asked.sequence, weir::Answer{}, out);
      }
      more = *taken > 0 && !pending.empty();
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = bytes.size() * data[0] / 256;
  const std::string whole = talk(bytes, "");
  const std::string pieces = talk(bytes.substr(0, cut), bytes.substr(cut));
  WEIR_ASSERT(whole == pieces);
  return 0;
}
