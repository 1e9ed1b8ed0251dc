// A RedisStore that answers from this server's leases where it can, without asking Redis.
//
// Spends of one leasable bucket without shadow limits are counted (leases.h). While the bucket is cold, each is sent to
// Redis alone, like any other question. Once it is hot, a request is
//   - answered from the current lease, or
//   - gathered: all requests of one turn form one question to Redis, which decides them one after another and may grant
//     a lease as well, or
//   - parked behind such a question in flight, as long as the wanted lease can serve it: its answer comes no later than
//     that of its own question would. Requests that the lease does not serve are asked afterwards.
// If Redis did not apply a question (MOVED, …), each of its requests is asked again alone: the RedisStore handles that.
//
// A lease ends kLeaseSpent after its question was sent. Unspent tokens are returned then, or when the store is
// destroyed.
//
// Thread safety: none; every loop has its own. Leases are shared by the loops.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/store/redis/leases.h"
#include "weir/store/redis/redis_store.h"

namespace weir::redis {

// Returns the key that lists the leases of a bucket, in the slot of the bucket's key: <prefix>l:…, or <prefix>l:{<the
// bucket's key>}. `letter_at` is the position of "b:" in the bucket's key. Returns nullopt if braces in the id make
// both impossible.
template <class SlotOf>
std::optional<std::string> lease_key(std::string_view key, std::size_t letter_at, SlotOf slot_of) {
  std::string same(key);
  same[letter_at] = 'l';
  if (slot_of(same) == slot_of(key)) return same;
  std::string tagged(key.substr(0, letter_at));
  tagged.append("l:{").append(key).append("}");
  if (slot_of(tagged) == slot_of(key)) return tagged;
  return std::nullopt;
}

class LeasingStore final : public Store {
 public:
  // Loop and leases must outlive the store.
  LeasingStore(Loop& loop, std::unique_ptr<RedisStore> store, Leases& leases)
      : loop_(loop), store_(std::move(store)), leases_(leases) {}
  ~LeasingStore() override;

  void charge(std::span<const Question> batch, Now now, Answers& answers) override;
  // Spends from a lease need no reply, and one question asks for a lease on behalf of all that wait.
  std::size_t batch_max() const noexcept override {
    return lending_ ? bounds::queries_per_turn_max : store_->batch_max();
  }
  Room room(const Question& question, std::size_t ahead) override { return store_->room(question, ahead); }
  bool answer_at_hand(const Question& question, Now now, Answers& answers) override;
  Duration patience() const noexcept override { return store_->patience(); }
  void give_up(const Question& question, Answers& answers) override { store_->give_up(question, answers); }
  RedisStore& store() noexcept { return *store_; }

 private:
  struct Member {
    Question question;
    Answers* answers;
    Now now;  // when it arrived
  };
  struct Place {  // a bucket in Redis
    Leases::Bucket bucket;
    Leases::Terms terms;
    std::string key;
    std::string lease_key;
  };
  struct Ask {
    Place place;
    Count cost = 1;
    Count want = 0;
    std::uint64_t serial = 0;
    Time sent{};
    Time deadline{};
    std::vector<Member> members;  // decided by the question
    std::vector<Member> parked;   // served from the lease
    Count parked_cost = 0;
  };
  struct Due {  // a lease to end
    Time until;
    Place place;
    std::uint64_t serial;
  };

  static bool may_lease(const Question& question) noexcept;
  bool lend(const Member& member, Time now, bool again);
  bool gather(const Member& member, Time now, Leases::Bucket bucket, const Leases::Terms& terms,
              const Leases::Answer& answer);
  Ask* find_open(Leases::Bucket bucket, const Leases::Terms& terms, Count cost) noexcept;
  std::optional<std::string> lease_key_of(std::string_view key) const;
  void send_gathered();
  void replied(Ask& ask, const resp::Reply* reply, Lost how);
  void decide(Ask& ask, std::span<const resp::Reply::Value> values);
  void settle_lease(const Ask& ask, Count leased, bool full, const Decision& left, bool all_fit);
  void fail(const Ask& ask, Trouble trouble, const Error& error);
  void ask_alone(std::span<const Member> members);
  void ask_anew(std::span<const Member> members);
  void give_back(const Place& place, Count tokens, std::uint64_t serial);
  void end_due(Time now);
  void arm();

  Loop& loop_;
  std::unique_ptr<RedisStore> store_;
  Leases& leases_;
  bool lending_ = false;  // the last batch used leases
  std::vector<Question> alone_;
  std::vector<std::shared_ptr<Ask>> open_;               // of this turn
  std::unordered_map<Leases::Bucket, Ask*> on_its_way_;  // questions in flight that ask for a lease
  std::deque<Due> due_;                                  // in the order they end
  Loop::TimerId timer_ = 0;
};

}  // namespace weir::redis
