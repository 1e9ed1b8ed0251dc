// The Store that keeps its buckets on Redis. A Lua script (algorithm/gcra.lua) decides, for several questions per
// command (batches.h). Everything asked in one turn of the loop goes out in one write; answers arrive later on the same
// loop.
//
// A question that is not answered within the timeout gets an Error: `timeout` if it may have been applied,
// `unavailable` otherwise; the failure policy handles both (store/failover). Nothing that may have been applied is sent
// again. A question that could not be sent because Redis is busy gets `overloaded`; it charged nothing.
//
// Thread safety: none; every loop has its own. Health is shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/pool.h"
#include "weir/net/loop.h"
#include "weir/redis/commands.h"
#include "weir/redis/health.h"
#include "weir/redis/redis_node.h"
#include "weir/redis/topology.h"
#include "weir/store/redis/asked.h"
#include "weir/store/redis/batches.h"
#include "weir/store/redis/denial_cache.h"
#include "weir/store/redis/gcra_script.h"
#include "weir/store/store.h"

namespace weir::redis {

class RedisStore final : public Store, public Commands, private RedisNode::Owner, private Batches::Owner {
 public:
  struct Options {
    RedisLink::Options link;    // for every link; the topology chooses the target
    std::size_t pool_size = 2;  // links per node
    std::string key_prefix = "weir:";
    std::string hash_tag;                  // empty: none
    HashKey denial_key;                    // secret
    std::shared_ptr<DenialCache> denials;  // shared by all loops of a server; null: no cache
    Script script = kGcraScript;
    bool decides = true;  // the script is gcra.lua and a probe runs it; false: a probe is a PING
    // Called when the store goes down or a master turns out to be a replica, so that other loops' stores can probe
    // before their clients are affected.
    std::function<void()> in_doubt{};
    std::function<Wall()> test_time;  // for tests; empty: Redis's own clock
  };

  // Loop and health must outlive the store.
  RedisStore(Loop& loop, Options options, Health& health, const MakeTopology& make_topology);
  ~RedisStore() override;

  void charge(std::span<const Question> batch, Now now, Answers& answers) override;
  std::size_t batch_max() const noexcept override;
  Room room(const Question& question, std::size_t ahead) override;
  bool answer_at_hand(const Question& question, Now now, Answers& answers) override;
  // Three quarters of the timeout: replies take at most the last quarter (flight_window.h).
  Duration patience() const noexcept override { return options_.link.timeout - options_.link.timeout / 4; }
  void give_up(const Question& question, Answers& answers) override;

  void ask(std::string_view key, std::span<const std::string_view> arguments, ReplyHandler on_reply) override;
  // Sends the command to this master only.
  void ask(RedisNode& node, std::span<const std::string_view> arguments, ReplyHandler on_reply);
  // Runs the script with the caller's arguments, starting with the number of keys, on the node that holds `key`, over
  // the link that its questions use. Sent once, with the next flush(). Calls `on_script` with the reply, which may be
  // an error, or with null and how it was lost; before script() returns if it cannot be sent.
  using ScriptDone = std::function<void(const resp::Reply* reply, Lost how)>;
  void script(std::string_view key, std::span<const std::string> arguments, Time deadline, ScriptDone on_script);
  // Sends everything queued. charge() calls it at its end.
  void flush();
  // A bucket's key, and the slot of a key.
  std::string key_of(Key key) const;
  int slot_of(std::string_view key) const noexcept { return topology_->slot_of(key); }
  const Options& options() const noexcept { return options_; }
  Health& health() noexcept { return health_; }
  // Calls `sending` and sends everything it asks in one write.
  void together(const std::function<void()>& sending);
  // Sends a probe to every node, to find out whether it replies.
  void probe();
  bool is_up() const noexcept override { return up_; }
  Topology& topology() noexcept { return *topology_; }

 private:
  struct Pending;

  void replied(RedisNode& node, RedisLink& link, Tag tag, const resp::Reply& reply) override;
  void lost(RedisNode& node, RedisLink& link, Tag tag, Lost how) override;
  void changed(RedisNode& node, RedisLink& link, std::string_view why) override;
  void still_down(RedisLink& link, std::string_view why) override;
  void unreplicated() override { health_.count_unreplicated(); }
  std::span<const std::string_view> probe(RedisNode& node) override;
  bool accepts_probe(RedisNode& node, const resp::Reply& reply) override;
  void not_sent(RedisLink& link, Tag tag) override;
  void late(Tag tag) override;

  RedisNode* node_of(Key key);
  void begin(const Question& question, Now now, Answers& answers);
  void send_command(RedisNode* node, bool anywhere, std::span<const std::string_view> arguments, ReplyHandler on_reply);
  void hear(Pending& pending, const Result<const resp::Reply*>& reply);
  void refuse_command(Pending& pending, RedisNode& node, RedisLink& link, const resp::Reply& reply);
  bool answer_from_memory(Pending& pending, Time now);
  void send_stage(Pending& pending);
  bool send_again(Pending& pending, std::size_t part, RedisNode* node, bool asking);
  void end_part(Pending& pending);
  void fail_part(Pending& pending, Trouble trouble, const Error& error);
  void decided(RedisNode& node, Tag tag, std::span<const resp::Reply::Value> values);
  void replied_to_batch(RedisNode& node, Tag batch, const resp::Reply& reply);
  void refuse_batch(RedisNode& node, const Batches::Tags& tags, std::string_view text);
  void lose(Tag tag, Lost how);
  void refuse(Pending& pending, std::size_t part, RedisNode& node, std::string_view text);
  void finish(Pending& pending);
  void settle(Pending& pending, const Verdict& verdict);
  void take_back(Pending& pending);
  void remember(const Pending& pending);
  void drop_denials(const Asked& asked, std::string_view but = {});
  Pending& pending_of(Tag tag) { return pending_[tag & 0xffffffff]; }
  void forget_denials(const Asked& asked);
  Pending& take();
  void release(Pending& pending);
  void trim_later();
  void touch(RedisLink& link);
  void judge_script(RedisNode& node, const resp::Reply& reply);
  void note_odd_reply(RedisNode& node, Trouble kind, std::string_view text);
  void tell(Pending& pending, const resp::Reply* reply, Lost how);
  const Wall* test_time();
  void went_down(std::string_view why);
  void came_up();

  Loop& loop_;
  Options options_;
  Health& health_;
  const Time created_;
  Asked::Keys keys_;
  DenialCache::Denial denial_;  // the last one found
  Pool<Pending> pending_;       // indexed by the low half of a tag
  Loop::TimerId trim_timer_ = 0;
  std::vector<RedisLink*> touched_;  // links with something to write
  bool charging_ = false;            // flush() then waits for the end of the batch
  bool up_ = false;
  bool settled_ = false;  // has been up or down since it was created
  Asked probe_;           // the question of every probe
  std::string probe_key_;
  Time doubted_at_{};  // when in_doubt was last called for a replica
  Wall test_time_{};
  std::string again_;  // the encoded command that is sent again
  Batches batches_;
  std::unique_ptr<Topology> topology_;  // last: its nodes call this store when they end
};

}  // namespace weir::redis
