// Limits from a service. Start here. In: a limit and an id. Out: the numbers that the limit's service gives for it.
//
//   Policy::resolve() ── find ──► AnswerCache       a fresh answer costs one lookup
//        │ none, or stale
//   Pipeline ── ask ──► LoopServices ──► Services   one call per key for all loops, slots, breakers
//                            ├──► SharedAnswers     another server may have asked (Redis)
//                            └──► Caller            HTTP or gRPC
//   the answer ──► AnswerCache, SharedAnswers ──► all waiters resolve again
//
// A failing service never fails a request: the stale copy is used, else the limit's own numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/core/query.h"
#include "weir/external/answer_cache.h"
#include "weir/external/caller.h"
#include "weir/external/shared_answers.h"
#include "weir/observe/service_metrics.h"
#include "weir/policy/named_limit.h"

namespace weir::external {

class Port;
enum class CallEnd : unsigned char;
struct Flight;
struct Service;

// What all loops share. Thread-safe.
class Services {
 public:
  using Log = std::function<void(LogLevel, std::string_view)>;
  // Returns an id of a limit as in bucket keys: a hash, if the limit is `hashed`. Called on any thread.
  using BucketId = std::function<std::string(std::string_view limit, std::string id)>;

  // `clock` must outlive it. `shared`: null if servers share nothing.
  Services(const Clock& clock, HashKey key, std::shared_ptr<SharedAnswers> shared, Log log,
           std::size_t answers_max = bounds::service_answers_max, BucketId bucket_id = {});
  ~Services();

  // Returns the cached answer for that id of that limit, fresh or stale. Null: none, use the limit's own numbers.
  AnswerCache::Found find(const NamedLimit& limit, std::string_view id, Time now) const;
  // Drops the answer here and on all servers that share answers. Calls `done` once, on any thread: with false if other
  // servers could not be notified.
  void forget(std::string_view limit, std::string_view id, std::function<void(bool shared)> done);
  ServiceGauges gauges() const;

 private:
  friend class LoopServices;

  Service& service_of(const NamedLimit& limit);
  void drop(std::string_view limit, std::string_view id);
  std::string tenant_id(std::string_view limit, const ServiceAnswer& answer) const;

  const Clock& clock_;
  AnswerCache cache_;
  std::shared_ptr<SharedAnswers> shared_;
  Log log_;
  BucketId bucket_id_;
  mutable std::mutex mutex_;
  // By limit and LimitsService::digest. A service that a reload replaced stays: its calls may be in flight.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Service>> services_;
  std::map<std::string, Service*, std::less<>> current_;  // by limit
};

// One loop's access to the services. Thread safety: none; it belongs to its loop, and locks what loops share.
class LoopServices final : public ServiceAnswers {
 public:
  // Runs work on the loop's thread in a later turn. Called on any thread.
  using Post = std::function<void(std::function<void()> work)>;

  // `services` and `metrics` must outlive it.
  LoopServices(Services& services, std::unique_ptr<Caller> caller, Post post, ServiceMetrics& metrics);
  ~LoopServices() override;

  Found find(const NamedLimit& limit, std::string_view id, Time now) const override;

  // Looks up an answer. Returns it at once, or delivers it for `wait` in a later turn unless leave() is called first.
  // Null: use the limit's own numbers.
  struct Asked {
    bool waits = false;
    std::shared_ptr<const ServiceAnswer> answer;
  };
  Asked ask(const NamedLimit& limit, std::string_view id, std::span<const Attribute> attributes, std::uint64_t wait);
  using Deliver = std::function<void(std::uint64_t wait, std::shared_ptr<const ServiceAnswer> answer)>;
  void on_answer(Deliver deliver) { deliver_ = std::move(deliver); }
  // Stops `wait` from waiting. The call continues for other waiters and for the cache.
  void leave(std::uint64_t wait);
  // Returns the cached answer, fresh or stale, or null.
  std::shared_ptr<const ServiceAnswer> known(const NamedLimit& limit, std::string_view id, Time now) const;
  // The same after a wait that took too long. Counts it as stale or missing.
  std::shared_ptr<const ServiceAnswer> give_up(const NamedLimit& limit, std::string_view id);

 private:
  friend class Port;
  using Where = ServiceMetrics::Cache;
  struct Ended;

  enum class Begun : unsigned char { refused, joined, first, beside };
  Begun begin(const NamedLimit& limit, std::string_view id, bool knows, std::span<const Attribute> attributes,
              std::uint64_t wait, std::shared_ptr<Flight>& flight);
  Asked fall_back(std::shared_ptr<const ServiceAnswer> stale);
  void start(const std::shared_ptr<Flight>& flight);
  void read_shared(const std::shared_ptr<Flight>& flight, std::optional<KeptAnswer> answer);
  void take_slot(const std::shared_ptr<Flight>& flight);
  void call(const std::shared_ptr<Flight>& flight);
  void called(const std::shared_ptr<Flight>& flight, Time began, CallOutcome outcome);
  void end_without_answer(const std::shared_ptr<Flight>& flight, CallEnd call);
  std::shared_ptr<const KeptAnswer> keep(const Flight& flight, KeptAnswer answer, Time now);
  void report(const Flight& flight, const ServiceReply& reply);
  void report(const Flight& flight, const Error& error);
  void end(const std::shared_ptr<Flight>& flight, const Ended& ended);
  void deliver(const std::vector<std::uint64_t>& waits, const std::shared_ptr<const ServiceAnswer>& answer,
               Where where);

  Services& services_;
  std::unique_ptr<Caller> caller_;
  ServiceMetrics& metrics_;
  Deliver deliver_;
  std::shared_ptr<Port> port_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Flight>> waiting_;
};

}  // namespace weir::external
