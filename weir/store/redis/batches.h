// Combines questions for one link into one EVALSHA, in order, so that Redis pays for a command and its clock once. Adds
// no delay: gathered questions are sent at the end of the loop's turn.
//
// Each question keeps its own tag and deadline. A batch in flight has its own tag, which finds its members when the
// reply arrives. A single question is sent under its own tag.
//
// Thread safety: none; it belongs to its loop.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/redis/redis_link.h"
#include "weir/store/redis/asked.h"

namespace weir::redis {

class Batches {
 public:
  // One part of a question, as it is sent.
  struct Member {
    Tag tag = 0;
    Asked* asked = nullptr;  // must outlive the sending
    std::size_t part = 0;
    Time deadline{};
    Effect effect = Effect::writes;
    std::optional<Wall> time{};  // for tests; the same for all questions of a batch
  };
  struct Owner {
    virtual ~Owner() = default;
    // The link is down or its queue is full.
    virtual void not_sent(RedisLink& link, Tag tag) = 0;
    // The question's deadline passed before the reply to its batch. It is no longer in that batch.
    virtual void late(Tag tag) = 0;
  };

  // All of them must outlive it.
  Batches(Loop& loop, const Script& script, Owner& owner) : loop_(loop), script_(script), owner_(owner) {}
  ~Batches() { loop_.cancel(timer_); }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  static bool is_batch(Tag tag) noexcept { return (tag & kBatch) != 0; }

  // Adds a question to the next send(). Sends what is already gathered for the link first if this one does not fit.
  void gather(RedisLink& link, const Member& member);
  // Hands what is gathered to the link, or to all links. Anything sent later stays behind it.
  void send(RedisLink& link);
  void send();

  // Removes a batch that was answered or lost. Returns the tags of its questions in order; kGone for one that was late.
  static constexpr Tag kGone = ~Tag{0};
  using Tags = InlineList<Tag, bounds::redis_batch_questions_max>;
  Tags take(Tag batch);

 private:
  static constexpr Tag kBatch = Tag{1} << 63;

  struct Gathered {
    RedisLink* link = nullptr;
    std::size_t keys = 0;
    InlineList<Member, bounds::redis_batch_questions_max> members;
  };
  struct Sent {
    Tag tag = kGone;
    Time deadline{};
  };
  using Batch = InlineList<Sent, bounds::redis_batch_questions_max>;

  bool fits(const Gathered& gathered, const Member& member) const noexcept;
  void send(const Gathered& gathered);
  std::span<const std::string_view> command(const Gathered& gathered);
  void arm(Time when);
  void expire();

  Loop& loop_;
  const Script& script_;
  Owner& owner_;
  std::vector<Gathered> gathered_;  // at most one per link
  std::vector<Batch> sent_;         // by the low bits of a tag; empty: free
  std::vector<std::size_t> free_;
  std::vector<std::string_view> command_;
  std::array<std::string, 3> numbers_;  // numbers of keys; a test's time
  Loop::TimerId timer_ = 0;
  Time timer_at_ = Time::max();  // at or before the first deadline that no link watches
};

}  // namespace weir::redis
