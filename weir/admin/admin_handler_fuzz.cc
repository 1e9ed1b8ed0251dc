// Feeds arbitrary bytes to an HTTP session with the admin API, whole and split in two: no crash, the same responses.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/admin_handler.h"
#include "weir/admin/admin_shared_test.h"
#include "weir/base/assert.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"

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

class AdminOutput final : public weir::Output {
 public:
  AdminOutput() : Output(text_) {}

 private:
  void wake() override {}
  std::string text_;
};

// What other threads posted to the loop.
class Posted {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  bool run() {
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(mutex_);
      work.swap(work_);
    }
    for (const auto& one : work) one();
    return !work.empty();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
};

std::string talk(std::string_view first, std::string_view second) {
  NoBuckets bucket_scan;
  weir::admin::AdminFixture fixture(bucket_scan);
  weir::admin::AdminHandler handler(fixture.shared());
  Posted posted;
  weir::http::HttpShared shared([&](std::function<void()> work) { posted.add(std::move(work)); });
  AdminOutput output;
  weir::http::Http1Session session(shared, handler, {output, "127.0.0.1", {}, {}, false});
  const auto answer = [&](const weir::Queries& queries) {
    for (const weir::Asked& asked : queries.all()) session.reply(asked.token, weir::Answer{});
    return !queries.all().empty();
  };
  std::string pending;
  for (const std::string_view piece : {first, second}) {
    pending += piece;
    // Like a connection: repeats until nothing changes.
    for (bool more = true; more && !session.finished();) {
      more = false;
      if (!pending.empty() && session.reading()) {
        weir::Queries queries;
        const auto taken = session.receive(pending, queries, {});
        if (!taken) return output.bytes;
        pending.erase(0, *taken);
        more = answer(queries) || *taken > 0;
      }
      finish_background_tasks(fixture.shared().background_tasks);
      more = posted.run() || more;
      if (session.has_more()) {
        weir::Queries queries;
        session.resume(queries, {});
        more = answer(queries) || more;
      }
      // A stream never ends by itself, and what it has written is not sent here.
      if (output.wants_fill) session.fill(output.bytes.size());
    }
  }
  return output.bytes;
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
