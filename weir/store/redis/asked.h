// One question to Redis, without I/O: which scripts to run with which keys and arguments, and what their replies mean
// together.
//
// A limit's rate and its quota are two buckets; each is an entry here. The buckets of one slot form a part, which is
// one script call. If all buckets are in one slot, as they always are on a single Redis, the question is one part.
// Otherwise the parts of a stage are sent at once; if one of them denies, the spends of the others are undone, minus
// what has refilled. In order, the next stage starts when the previous one has allowed.
//
// Reusable: after a few questions it allocates nothing. Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/core/verdict.h"
#include "weir/redis/redis_client.h"
#include "weir/store/store.h"

namespace weir::redis {

// Fails if the limit's window is too long for Redis's arithmetic; the error names the limit.
Result<void> check_window(std::string_view limit_name, const Limit& limit);

// Appends the Redis key of a bucket to `out`: <prefix>b:…, w:… or a:…, with {hash_tag} after the prefix.
void append_key(std::string_view prefix, std::string_view hash_tag, Key key, std::string& out);

class Asked {
 public:
  struct Keys {
    std::string prefix = "weir:";
    std::string hash_tag{};  // empty: none
    std::function<int(std::string_view)> slot_of{};
  };

  // Copies what it needs of the question. Returns `invalid` if a window is too long for Redis.
  Result<void> begin(const Question& question, const Keys& keys);

  Mode mode() const noexcept { return mode_; }
  bool is_empty() const noexcept { return entries_size_ == 0; }

  // The parts of the current stage: [first_part(), end_part()).
  std::size_t first_part() const noexcept { return first_part_; }
  std::size_t end_part() const noexcept { return end_part_; }
  int slot(std::size_t part) const noexcept { return parts_[part].slot; }
  std::string_view first_key(std::size_t part) const noexcept;

  std::size_t keys(std::size_t part) const noexcept;

  // Returns the command: views into this object and `script`, valid until the next call. Tests may pass `time`;
  // production uses Redis's clock.
  std::span<const std::string_view> command(std::size_t part, const Script& script, const Wall* time = nullptr);
  // Append the part's keys and script arguments to a command for several questions: views into this object, valid until
  // the next call.
  void append_keys(std::size_t part, std::vector<std::string_view>& words) const;
  void append_arguments(std::size_t part, std::vector<std::string_view>& words);
  // Returns the command that takes the part's spends back; empty if it spent nothing.
  std::span<const std::string_view> undo_command(std::size_t part, const Script& script, const Wall* time = nullptr);

  // Takes a part's reply, or its share of a reply to several questions. Fails if the script cannot have sent it.
  Result<void> absorb(std::size_t part, std::span<const resp::Reply::Value> values);
  Result<void> absorb(std::size_t part, const resp::Reply& reply) { return absorb(part, reply.values()); }
  // Called when all parts of the stage have replied. Returns true if there is another stage to send. Otherwise
  // verdict() is final, and the caller must undo the parts before end_part() for which must_undo() is true.
  bool advance() noexcept;
  bool must_undo(std::size_t part) const noexcept;
  // A part of the stage failed: what the other parts spent must be undone.
  void abandon() noexcept;
  Verdict verdict() const noexcept;

  // For the denial cache. True if asking again would be denied again and charge nothing: the first group denied, and no
  // charge is a shadow, which would be charged on its own.
  bool is_denied_for_all() const noexcept;
  // Equal for questions with the same buckets, numbers, costs and order.
  std::string_view identity() const noexcept { return identity_; }
  std::size_t entries() const noexcept { return entries_size_; }
  std::string_view key(std::size_t entry) const noexcept;
  bool denies(std::size_t entry) const noexcept;
  // Restores cached decisions, one per entry, advanced by `later`. Assumes that nothing was charged since.
  void recall(std::span<const Decision> decisions, Duration later) noexcept;
  Decision decision(std::size_t entry) const noexcept;

 private:
  struct Entry {
    std::size_t key_at = 0;
    std::size_t key_size = 0;
    Kind kind = Kind::bucket;
    Limit limit = Limit::per_second(1);
    Quota quota;
    Count cost = 0;
    Role role = Role::enforces;
    bool peeks = false;  // takes nothing
    bool enforces() const noexcept { return role == Role::enforces; }
    std::size_t charge = 0;  // the first charge that uses it
    std::size_t group = 0;
    std::size_t part = 0;
    bool answered = false;
    bool must_undo = false;  // spent, but another bucket denied the request or the limit
    Decision decision{};
  };
  struct Part {
    int slot = 0;
    std::size_t stage = 0;
    std::int64_t seconds = 0;  // when it was charged, by its Redis's clock
    std::int64_t microseconds = 0;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Asking {              // one charge of the question
    std::size_t rate = kNone;  // its entries
    std::size_t quota = kNone;
    std::size_t group = 0;
    Role role = Role::enforces;
  };

  Result<void> add(const Charge& charge, std::size_t group, const Keys& keys);
  // Returns the index of the bucket's entry: the existing one with this key, or a copy of `fresh`.
  std::size_t add(Key key, const Entry& fresh, const Keys& keys);
  void plan(Order order, const Keys& keys);
  void identify(Order order);
  // True if the question is about one bucket and its spend is never undone: it can use the script's short form.
  bool is_one_bucket(std::size_t part) const noexcept;
  void begin_numbers();
  void push_number(std::int64_t number, std::vector<std::string_view>& words);
  void push_price(const Entry& entry, Mode mode, std::vector<std::string_view>& words);
  // How an entry relates to the previous one in its part.
  enum class Joint : unsigned char { same_group, next_group, same_limit };
  void push_entry(const Entry& entry, Mode mode, Joint joint, std::vector<std::string_view>& words);
  void push_arguments(std::size_t part, std::vector<std::string_view>& words);
  void push_head(std::size_t keys, const Script& script);
  void push_time(const Wall* time);
  bool absorb_bucket(Entry& entry, std::int64_t backlog) noexcept;
  bool absorb_quota(Entry& entry, std::int64_t used, std::int64_t end, Wall now) noexcept;
  void undo_enforcing() noexcept;
  bool lacks_alternative() const noexcept;
  void undo_alternatives() noexcept;
  void undo_shadows() noexcept;
  static Decision as_it_stands(const Entry& entry) noexcept;

  Mode mode_ = Mode::spend;
  // Sized for the largest question so far, not the maximum: a flood creates many of these, and most questions name one
  // bucket.
  std::vector<Entry> list_;
  std::vector<Part> parts_;
  std::vector<Asking> charges_;
  std::size_t entries_size_ = 0;
  std::size_t parts_size_ = 0;
  std::size_t charges_size_ = 0;
  std::size_t first_part_ = 0;
  std::size_t end_part_ = 0;
  std::size_t forgotten_ = 0;
  bool denied_ = false;
  bool has_alternatives_ = false;
  std::string keys_;
  std::string identity_;
  std::string numbers_;
  std::vector<std::string_view> command_;
};

}  // namespace weir::redis
