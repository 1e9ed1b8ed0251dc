#include "weir/store/redis/redis_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::redis {

// One question, from charge() until its last reply. It is answered earlier if a part fails.
struct RedisStore::Pending {
  std::size_t index = 0;
  Ticket ticket = 0;
  Answers* answers = nullptr;  // null: answered
  Asked asked;
  Time sent{};
  Time deadline{};
  int sends = 0;
  std::uint64_t voided = 0;    // denials->serial() when it was sent
  std::size_t parts_left = 0;  // of the stage
  bool failed = false;
  bool asks_again = false;  // denied a second ago; drop that denial if allowed now
  ReplyHandler on_reply;    // for a command that is not a question
  bool anywhere = false;    // that command may be sent to another node
  ScriptDone on_script;     // for a script that is not a question
};

namespace {

// The tag of commands whose reply is ignored.
constexpr Tag kNobody = ~Tag{0};
constexpr int kPartShift = 32;

// Limit of the bucket that probes spend from: never denies, and expires within 2 ms.
constexpr Limit kProbeLimit = Limit::per_second(1'000'000).with_burst(1000);

// How often other loops are notified that a master turned out to be a replica.
constexpr Duration kDoubtEvery = std::chrono::milliseconds{100};

// How many keys to try until one belongs to the cluster node being probed.
constexpr int kProbeKeys = 256;

// Batch size while Redis is idle, so that it starts on these while we read more. When it is busy, a batch is as large
// as the number of questions in flight. With 50 connections, 4 and 16 are slower than 8 (script/bench redis).
constexpr std::size_t kFewQuestions = 8;

// True for commands other than questions that need not reach replicas.
bool is_read(std::string_view command) noexcept {
  constexpr std::array<std::string_view, 6> kReads = {"GET", "HGET", "HSCAN", "PING", "SCAN", "TIME"};
  return std::ranges::find(kReads, command) != kReads.end();
}

Tag tag_of(std::size_t index, std::size_t part) noexcept {
  return Tag{index} | Tag{part} << kPartShift;
}

std::size_t part_of(Tag tag) noexcept {
  return tag >> kPartShift;
}

constexpr std::uint64_t kHashOffset = 14695981039346656037u;
constexpr std::uint64_t kHashPrime = 1099511628211u;

// For picking a link: any hash that spreads well.
std::uint64_t hash(std::string_view key) noexcept {
  std::uint64_t h = kHashOffset;
  for (const char byte : key) h = (h ^ static_cast<unsigned char>(byte)) * kHashPrime;
  return h ^ h >> 32;
}

}  // namespace

RedisStore::RedisStore(Loop& loop, Options options, Health& health, const MakeTopology& make_topology)
    : loop_(loop),
      options_(std::move(options)),
      health_(health),
      created_(loop.now().time),
      pending_(bounds::spare_questions_max),
      batches_(loop, options_.script, *this) {
  health_.joined();
  options_.link.client.script = options_.script;
  topology_ = make_topology(loop_, [this](const Target& target) {
    RedisLink::Options link = options_.link;
    link.target = target;
    return std::make_unique<RedisNode>(loop_, static_cast<RedisNode::Owner&>(*this), link, options_.pool_size);
  });
  keys_ = {options_.key_prefix, options_.hash_tag, [this](std::string_view key) { return topology_->slot_of(key); }};
}

RedisStore::~RedisStore() {
  loop_.cancel(trim_timer_);
  health_.left(up_);
}

const Wall* RedisStore::test_time() {
  if (!options_.test_time) return nullptr;
  test_time_ = options_.test_time();
  return &test_time_;
}

RedisStore::Pending& RedisStore::take() {
  const std::size_t index = pending_.take();
  Pending& pending = pending_[index];
  pending.index = index;
  pending.sends = 0;
  pending.parts_left = 0;
  pending.failed = false;
  pending.asks_again = false;
  pending.on_reply = nullptr;
  pending.on_script = nullptr;
  return pending;
}

void RedisStore::release(Pending& pending) {
  pending_.release(pending.index);
  if (pending_.has_excess() && trim_timer_ == 0) trim_later();
}

void RedisStore::trim_later() {
  trim_timer_ = loop_.at(loop_.now().time + kTrimEvery, [this] {
    trim_timer_ = 0;
    pending_.trim();
    if (pending_.has_excess()) trim_later();
  });
}

void RedisStore::charge(std::span<const Question> batch, Now now, Answers& answers) {
  together([&] {
    for (const Question& question : batch) begin(question, now, answers);
  });
}

std::size_t RedisStore::batch_max() const noexcept {
  return std::clamp(pending_.in_use(), kFewQuestions, bounds::queries_per_turn_max);
}

void RedisStore::together(const std::function<void()>& sending) {
  const bool was = std::exchange(charging_, true);
  sending();
  charging_ = was;
  flush();
}

void RedisStore::begin(const Question& question, Now now, Answers& answers) {
  Pending& pending = take();
  pending.ticket = question.ticket;
  pending.answers = &answers;
  pending.sent = now.time;
  pending.deadline = (question.asked == Time{} ? now.time : question.asked) + options_.link.timeout;
  if (options_.denials != nullptr) pending.voided = options_.denials->serial();
  const auto begun = pending.asked.begin(question, keys_);
  if (!begun || pending.asked.is_empty()) {
    const Result<Verdict> answer = begun ? Result<Verdict>(Verdict{}) : Result<Verdict>(begun.error());
    release(pending);
    answers.answer(question.ticket, answer);
    return;
  }
  // From here on, cached denials of these buckets are void, also those of questions in flight.
  if (question.mode == Mode::refund || question.mode == Mode::reset) forget_denials(pending.asked);
  if (question.mode == Mode::spend && answer_from_memory(pending, now.time)) return;
  send_stage(pending);
}

bool RedisStore::answer_at_hand(const Question& question, Now now, Answers& answers) {
  if (options_.denials == nullptr || options_.denials->size() == 0 || question.mode == Mode::peek) return false;
  Pending& pending = take();
  pending.ticket = question.ticket;
  pending.answers = &answers;
  const auto begun = pending.asked.begin(question, keys_);
  if (begun && question.mode == Mode::spend && answer_from_memory(pending, now.time)) return true;
  if (begun && question.mode != Mode::spend) drop_denials(pending.asked);
  release(pending);
  return false;
}

bool RedisStore::answer_from_memory(Pending& pending, Time now) {
  if (options_.denials == nullptr) return false;
  Asked& asked = pending.asked;
  for (std::size_t i = 0; i < asked.entries(); ++i) {
    const auto found = options_.denials->find(asked.key(i), asked.identity(), now, denial_);
    if (found == DenialCache::Found::ask_again) pending.asks_again = true;
    if (found != DenialCache::Found::denied) continue;
    // Another loop may have cached it after this loop read its clock.
    asked.recall(denial_.decisions, std::max(now - denial_.sent, Duration::zero()));
    health_.count_denial_hit();
    settle(pending, asked.verdict());
    return true;
  }
  return false;
}

void RedisStore::send_stage(Pending& pending) {
  Asked& asked = pending.asked;
  const std::size_t first = asked.first_part();
  const std::size_t end = asked.end_part();
  // A peek may write to settle a bucket; repeating that write is harmless.
  const bool looks = asked.mode() == Mode::peek || asked.mode() == Mode::look;
  const Effect effect = looks ? Effect::reads : Effect::writes;
  pending.parts_left = end - first;
  for (std::size_t part = first; part < end; ++part) {
    RedisNode* const node = topology_->node_of(asked.slot(part));
    RedisLink* const link = node == nullptr ? nullptr : node->pick(hash(asked.first_key(part)));
    if (link == nullptr) {
      fail_part(pending, Trouble::unreachable, {Fault::unavailable, "Redis cannot be reached"});
      continue;
    }
    Batches::Member member{tag_of(pending.index, part), &asked, part, pending.deadline, effect, {}};
    if (const Wall* const time = test_time()) member.time = *time;
    batches_.gather(*link, member);
    touch(*link);
  }
}

void RedisStore::not_sent(RedisLink& link, Tag tag) {
  if (!link.is_up()) return lose(tag, Lost::unsent);
  fail_part(pending_of(tag), Trouble::overloaded, {Fault::overloaded, "too many commands are waiting for Redis"});
}

// REQUIRES: Redis did not apply the part. Sends it alone, not in a batch.
bool RedisStore::send_again(Pending& pending, std::size_t part, RedisNode* node, bool asking) {
  if (node == nullptr || pending.failed || ++pending.sends >= bounds::redis_sends_max) return false;
  RedisLink* const link = node->pick(hash(pending.asked.first_key(part)));
  if (link == nullptr) return false;
  batches_.send(*link);
  again_.clear();
  resp::write_command(pending.asked.command(part, options_.script, test_time()), again_);
  if (!link->send_encoded(tag_of(pending.index, part), again_, pending.deadline, asking)) return false;
  touch(*link);
  return true;
}

void RedisStore::touch(RedisLink& link) {
  if (touched_.empty() || touched_.back() != &link) touched_.push_back(&link);
}

void RedisStore::flush() {
  if (charging_) return;
  batches_.send();
  for (RedisLink* const link : std::exchange(touched_, {})) link->flush();
}

void RedisStore::replied(RedisNode& node, RedisLink& link, Tag tag, const resp::Reply& reply) {
  if (tag == kNobody) return;
  if (Batches::is_batch(tag)) return replied_to_batch(node, tag, reply);
  Pending& pending = pending_of(tag);
  if (pending.on_script) {
    judge_script(node, reply);
    tell(pending, &reply, Lost::unknown);
    return;
  }
  if (pending.on_reply) {
    if (reply.root().type == resp::Type::error) {
      refuse_command(pending, node, link, reply);
    } else {
      hear(pending, &reply);
    }
    return;
  }
  decided(node, tag, reply.values());
  flush();
}

// Handles the reply to one question, or its share of the reply to a batch.
void RedisStore::decided(RedisNode& node, Tag tag, std::span<const resp::Reply::Value> values) {
  Pending& pending = pending_of(tag);
  const std::size_t part = part_of(tag);
  const resp::Reply::Value& first = values.front();
  if (first.type == resp::Type::error) {
    refuse(pending, part, node, first.text);
  } else if (const auto absorbed = pending.asked.absorb(part, values); !absorbed) {
    note_odd_reply(node, Trouble::malformed, first.text);
    fail_part(pending, Trouble::malformed, absorbed.error());
  } else {
    node.note_decision();
    if (!up_) came_up();  // a node that was down may have left the cluster
    end_part(pending);
  }
}

// In the reply to a batch, the error of one question is a bulk string; a RESP error concerns the whole command.
void RedisStore::replied_to_batch(RedisNode& node, Tag batch, const resp::Reply& reply) {
  const Batches::Tags tags = batches_.take(batch);
  if (reply.root().type == resp::Type::error) return refuse_batch(node, tags, reply.root().text);
  std::span<const resp::Reply::Value> values = reply.values().subspan(1);
  const bool whole = reply.root().type == resp::Type::array && reply.root().count == tags.size();
  for (const Tag tag : tags) {
    const std::span<const resp::Reply::Value> share = whole ? values.first(values.front().skip) : values;
    if (whole) values = values.subspan(share.size());
    if (tag == Batches::kGone) continue;
    if (!whole) {
      note_odd_reply(node, Trouble::malformed, reply.root().text);
      fail_part(pending_of(tag), Trouble::malformed,
                {Fault::unavailable, "Redis sent an unexpected reply to the script"});
    } else if (share.front().type == resp::Type::bulk) {
      refuse(pending_of(tag), part_of(tag), node, share.front().text);
    } else {
      decided(node, tag, share);
    }
  }
  flush();
}

// Updates topology and health from the reply to a script().
void RedisStore::judge_script(RedisNode& node, const resp::Reply& reply) {
  if (reply.root().type == resp::Type::array) return node.note_decision();
  if (reply.root().type != resp::Type::error) return note_odd_reply(node, Trouble::malformed, reply.root().text);
  const Refused refused = parse_refusal(reply.root().text);
  topology_->refused(node, refused);
  if (!is_not_applied(refused.refusal)) note_odd_reply(node, trouble_of(refused.refusal), reply.root().text);
}

// An error about keys may concern only some questions, so each is sent again alone. Any other error applies to all.
void RedisStore::refuse_batch(RedisNode& node, const Batches::Tags& tags, std::string_view text) {
  const Refused refused = parse_refusal(text);
  Topology::Redirect next = topology_->refused(node, refused);
  const bool keys = text.starts_with("NOPERM") || text.starts_with("CROSSSLOT");
  if (keys) next = {&node, false};
  for (const Tag tag : tags) {
    if (tag == Batches::kGone) continue;
    Pending& pending = pending_of(tag);
    const std::size_t part = part_of(tag);
    if ((keys || is_not_applied(refused.refusal)) && send_again(pending, part, next.node, next.asking)) continue;
    note_odd_reply(node, trouble_of(refused.refusal), text);
    fail_part(pending, trouble_of(refused.refusal), to_error(refused.refusal, text));
  }
  flush();
}

void RedisStore::refuse(Pending& pending, std::size_t part, RedisNode& node, std::string_view text) {
  const Refused refused = parse_refusal(text);
  const Topology::Redirect next = topology_->refused(node, refused);
  if (is_not_applied(refused.refusal) && send_again(pending, part, next.node, next.asking)) return;
  note_odd_reply(node, trouble_of(refused.refusal), text);
  fail_part(pending, trouble_of(refused.refusal), to_error(refused.refusal, text));
}

void RedisStore::note_odd_reply(RedisNode& node, Trouble kind, std::string_view text) {
  const Time now = loop_.now().time;
  health_.log_odd_reply(kind, text, now);
  if (kind == trouble_of(Refusal::read_only) && options_.in_doubt && now - doubted_at_ >= kDoubtEvery) {
    doubted_at_ = now;
    options_.in_doubt();
  }
  node.note_odd_reply("replies are not decisions: kind=" + std::string(print(kind)) + " reply=" + quote(text));
}

void RedisStore::tell(Pending& pending, const resp::Reply* reply, Lost how) {
  const ScriptDone on_script = std::exchange(pending.on_script, nullptr);
  release(pending);
  on_script(reply, how);
  flush();
}

void RedisStore::lost(RedisNode&, RedisLink&, Tag tag, Lost how) {
  if (tag == kNobody) return;
  if (Batches::is_batch(tag)) {
    for (const Tag member : batches_.take(tag)) {
      if (member != Batches::kGone) lose(member, how);
    }
    flush();
    return;
  }
  Pending& pending = pending_of(tag);
  if (pending.on_script) return tell(pending, nullptr, how);
  if (pending.on_reply) {
    const Fault fault = how == Lost::unsent ? Fault::unavailable : Fault::timeout;
    hear(pending, Error{fault, how == Lost::late ? "Redis did not reply in time" : "the connection to Redis was lost"});
    return;
  }
  lose(tag, how);
  flush();
}

void RedisStore::lose(Tag tag, Lost how) {
  Pending& pending = pending_of(tag);
  const std::size_t part = part_of(tag);
  switch (how) {
    case Lost::unsent:
      if (send_again(pending, part, topology_->node_of(pending.asked.slot(part)), false)) break;
      fail_part(pending, Trouble::unreachable, {Fault::unavailable, "the connection to Redis was lost"});
      break;
    case Lost::unknown:
      fail_part(pending, Trouble::lost, {Fault::timeout, "the connection to Redis was lost before it replied"});
      break;
    case Lost::late:
      fail_part(pending, Trouble::timeout, {Fault::timeout, "Redis did not reply in time"});
      break;
  }
}

void RedisStore::late(Tag tag) {
  lose(tag, Lost::late);
  flush();
}

void RedisStore::fail_part(Pending& pending, Trouble trouble, const Error& error) {
  pending.failed = true;
  if (pending.answers != nullptr) {
    health_.count(trouble);
    std::exchange(pending.answers, nullptr)->answer(pending.ticket, error);
  }
  end_part(pending);
}

void RedisStore::end_part(Pending& pending) {
  WEIR_ASSERT(pending.parts_left > 0);
  if (--pending.parts_left > 0) return;
  finish(pending);
}

void RedisStore::finish(Pending& pending) {
  Asked& asked = pending.asked;
  if (pending.failed) asked.abandon();
  if (asked.advance()) {
    send_stage(pending);
    return;
  }
  take_back(pending);
  if (asked.mode() == Mode::refund || asked.mode() == Mode::reset) forget_denials(asked);
  if (pending.answers == nullptr) {
    release(pending);
    return;
  }
  if (asked.is_denied_for_all()) {
    remember(pending);
  } else if (asked.mode() == Mode::spend) {
    // What was charged makes a denial of another cost wait longer. One of the same question came after this was sent.
    drop_denials(asked, pending.asks_again ? std::string_view{} : asked.identity());
  }
  settle(pending, asked.verdict());
}

// Releases `pending` before it answers, because the answer may lead to a new question that reuses it.
void RedisStore::settle(Pending& pending, const Verdict& verdict) {
  Answers& answers = *std::exchange(pending.answers, nullptr);
  const Ticket ticket = pending.ticket;
  release(pending);
  answers.answer(ticket, verdict);
}

// Does not wait for the undo. If it is lost with the connection, the tokens refill with time.
void RedisStore::take_back(Pending& pending) {
  Asked& asked = pending.asked;
  for (std::size_t part = 0; part < asked.end_part(); ++part) {
    if (!asked.must_undo(part)) continue;
    RedisNode* const node = topology_->node_of(asked.slot(part));
    RedisLink* const link = node == nullptr ? nullptr : node->pick(hash(asked.first_key(part)));
    if (link == nullptr) continue;
    batches_.send(*link);
    const auto command = asked.undo_command(part, options_.script, test_time());
    if (!command.empty() && link->send(kNobody, command)) touch(*link);
  }
}

void RedisStore::remember(const Pending& pending) {
  if (options_.denials == nullptr) return;
  const Asked& asked = pending.asked;
  std::array<Decision, bounds::charged_buckets_max> decisions;
  for (std::size_t i = 0; i < asked.entries(); ++i) decisions[i] = asked.decision(i);
  // Cached under the bucket that denies longest: until it allows, the other buckets do not matter.
  std::size_t strictest = asked.entries();
  for (std::size_t i = 0; i < asked.entries(); ++i) {
    if (!asked.denies(i)) continue;
    if (strictest == asked.entries() || stricter(decisions[i], decisions[strictest])) strictest = i;
  }
  options_.denials->remember(asked.key(strictest), asked.identity(), std::span(decisions.data(), asked.entries()),
                             decisions[strictest].retry_after, pending.sent, loop_.now().time, pending.voided);
}

void RedisStore::changed(RedisNode& node, RedisLink& link, std::string_view why) {
  if (link.is_up()) {
    const std::string_view policy = link.maxmemory_policy();
    if (!policy.empty() && policy != "noeviction" && policy != "volatile-ttl") {
      health_.warn("Redis at " + link.target().print() + " has maxmemory-policy " + std::string(policy) +
                   ": it may forget buckets that are not full; use noeviction or volatile-ttl");
    }
  }
  topology_->changed(node);
  if (topology_->is_up()) {
    if (!up_) came_up();
  } else if (!why.empty()) {
    went_down(cause_at(link.target(), why));
  }
}

// Uses a key that the node holds, if one is found. A redirection for another key also shows that the node is alive.
std::span<const std::string_view> RedisStore::probe(RedisNode& node) {
  static constexpr std::array<std::string_view, 1> kPing = {"PING"};
  if (!options_.decides) return kPing;
  for (int i = 0; i < kProbeKeys; ++i) {
    probe_key_ = std::string(kProbeBucket) + "{" + std::to_string(i) + "}";
    if (topology_->node_of(topology_->slot_of(key_of({probe_key_}))) == &node) break;
  }
  Charge charge;
  charge.rate = RateCharge{probe_key_, kProbeLimit};
  const auto begun = probe_.begin({0, {&charge, 1}}, keys_);
  WEIR_ASSERT(begun);
  return probe_.command(0, options_.script, test_time());
}

bool RedisStore::accepts_probe(RedisNode& node, const resp::Reply& reply) {
  if (reply.root().type != resp::Type::error) return !options_.decides || probe_.absorb(0, reply);
  const Refused refused = parse_refusal(reply.root().text);
  topology_->refused(node, refused);
  return refused.refusal == Refusal::moved || refused.refusal == Refusal::ask || refused.refusal == Refusal::try_again;
}

void RedisStore::ask(std::string_view key, std::span<const std::string_view> arguments, ReplyHandler on_reply) {
  send_command(topology_->node_of(topology_->slot_of(key)), true, arguments, std::move(on_reply));
}

void RedisStore::ask(RedisNode& node, std::span<const std::string_view> arguments, ReplyHandler on_reply) {
  send_command(&node, false, arguments, std::move(on_reply));
}

void RedisStore::send_command(RedisNode* node, bool anywhere, std::span<const std::string_view> arguments,
                              ReplyHandler on_reply) {
  RedisLink* const link = node == nullptr ? nullptr : node->pick(0);
  Pending& pending = take();
  pending.answers = nullptr;
  pending.deadline = loop_.now().time + options_.link.timeout;
  pending.anywhere = anywhere;
  pending.on_reply = std::move(on_reply);
  if (link == nullptr) return hear(pending, Error{Fault::unavailable, "Redis cannot be reached"});
  const Effect effect = is_read(arguments.front()) ? Effect::reads : Effect::writes;
  batches_.send(*link);
  if (!link->send(tag_of(pending.index, 0), arguments, pending.deadline, effect)) {
    return hear(pending, Error{Fault::unavailable, "too many commands are waiting for Redis"});
  }
  touch(*link);
  flush();
}

void RedisStore::hear(Pending& pending, const Result<const resp::Reply*>& reply) {
  const ReplyHandler on_reply = std::exchange(pending.on_reply, nullptr);
  release(pending);
  on_reply(reply);
}

void RedisStore::refuse_command(Pending& pending, RedisNode& node, RedisLink& link, const resp::Reply& reply) {
  const Refused refused = parse_refusal(reply.root().text);
  const Topology::Redirect next = topology_->refused(node, refused);
  const bool again = pending.anywhere && is_not_applied(refused.refusal) && next.node != nullptr;
  RedisLink* const other = again && ++pending.sends < bounds::redis_sends_max ? next.node->pick(0) : nullptr;
  if (other != nullptr &&
      other->send_encoded(tag_of(pending.index, 0), link.command(), pending.deadline, next.asking)) {
    touch(*other);
    flush();
    return;
  }
  hear(pending, to_error(refused.refusal, reply.root().text));
}

void RedisStore::script(std::string_view key, std::span<const std::string> arguments, Time deadline,
                        ScriptDone on_script) {
  RedisNode* const node = topology_->node_of(topology_->slot_of(key));
  RedisLink* const link = node == nullptr ? nullptr : node->pick(hash(key));
  std::vector<std::string_view> command = {"EVALSHA", options_.script.sha};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::array<std::string, 2> time;
  if (test_time() != nullptr) {
    const std::int64_t microseconds = test_time_.time_since_epoch() / std::chrono::microseconds{1};
    time = {std::to_string(microseconds / 1'000'000), std::to_string(microseconds % 1'000'000)};
    command.insert(command.end(), time.begin(), time.end());
  }
  Pending& pending = take();
  pending.answers = nullptr;
  if (link != nullptr) batches_.send(*link);
  if (link == nullptr || !link->send(tag_of(pending.index, 0), command, deadline)) {
    release(pending);
    on_script(nullptr, Lost::unsent);
    return;
  }
  pending.on_script = std::move(on_script);
  touch(*link);
}

void RedisStore::probe() {
  for (RedisNode* const node : topology_->masters()) node->probe();
}

}  // namespace weir::redis
