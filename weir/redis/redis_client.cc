#include "weir/redis/redis_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/text.h"
#include "weir/redis/refusal.h"

namespace weir::redis {
namespace {

// Answered commands are erased from the front of the bytes once they are this many and most of them.
constexpr std::size_t kCutBytes = 64u << 10;

bool is_error(const resp::Reply& reply) {
  return reply.root().type == resp::Type::error;
}

// The third argument of EVALSHA is the number of keys.
std::uint16_t buckets_of(std::span<const std::string_view> arguments) noexcept {
  std::uint16_t keys = 0;
  if (arguments.size() < 3 || arguments[0] != "EVALSHA") return 1;
  std::from_chars(arguments[2].data(), arguments[2].data() + arguments[2].size(), keys);
  return std::max<std::uint16_t>(keys, 1);
}

}  // namespace

void RedisClient::open() {
  WEIR_ASSERT(stage_ == Stage::closed && pending_.empty());
  stage_ = Stage::hello;
  const std::string_view user = options_.username.empty() ? std::string_view("default") : options_.username;
  std::vector<std::string_view> hello = {"HELLO", "3"};
  if (logs_in()) hello.insert(hello.end(), {"AUTH", user, options_.password});
  if (!options_.name.empty()) hello.insert(hello.end(), {"SETNAME", options_.name});
  push(Purpose::hello, hello);
}

void RedisClient::push(Purpose purpose, std::span<const std::string_view> arguments) {
  const std::size_t before = bytes_.size();
  resp::write_command(arguments, bytes_);
  PendingCommand pending;
  pending.size = bytes_.size() - before;
  pending.purpose = purpose;
  pending_.push_back(pending);
}

// Deadlines are in the order sent, except for commands that are repeated or come from another client.
void RedisClient::push(PendingCommand pending) {
  if (!pending.reads) wait_by_ = std::min(wait_by_, pending.deadline);
  pending.early = pending.deadline < latest_deadline_;
  if (pending.early) ++early_;
  latest_deadline_ = std::max(latest_deadline_, pending.deadline);
  buckets_sent_ += pending.buckets;
  pending_.push_back(pending);
}

// An ACL user can have no password.
bool RedisClient::logs_in() const noexcept {
  return !options_.password.empty() || !options_.username.empty();
}

bool RedisClient::has_room(std::size_t bytes) const noexcept {
  return is_ready() && pending_.size() < bounds::redis_unanswered_max &&
         bytes_.size() - head_ + bytes <= bounds::redis_unanswered_bytes_max;
}

bool RedisClient::send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect) {
  if (!has_room(0)) return false;
  const std::size_t before = bytes_.size();
  resp::write_command(arguments, bytes_);
  if (!has_room(0)) {
    bytes_.resize(before);
    return false;
  }
  PendingCommand pending;
  pending.tag = tag;
  pending.size = bytes_.size() - before;
  pending.deadline = deadline;
  pending.reads = effect == Effect::reads;
  pending.buckets = buckets_of(arguments);
  push(pending);
  return true;
}

bool RedisClient::send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking) {
  if (!has_room(bytes.size())) return false;
  constexpr std::array<std::string_view, 1> kAsking = {"ASKING"};
  // Copied first: `bytes` may be our own command(), which moves when anything is appended.
  const std::string copy(bytes);
  if (asking) push(Purpose::asking, kAsking);
  bytes_ += copy;
  PendingCommand pending;
  pending.tag = tag;
  pending.size = copy.size();
  pending.buckets = 1;
  pending.deadline = deadline;
  pending.asking = asking;
  push(pending);
  return true;
}

// The WAIT has the latest deadline of the writes it covers. It gets at most half of the time left, so that its reply
// arrives before that.
void RedisClient::add_wait(Time now, Duration patience) {
  if (options_.wait_replicas == 0 || !is_ready() || wait_end_ != 0) return;
  const Time by = std::exchange(wait_by_, Time::max());
  if (by == Time::max() || patience <= Duration::zero()) return;
  patience = std::min(patience, (by - now) / 2);
  const std::string replicas = std::to_string(options_.wait_replicas);
  const std::string milliseconds = std::to_string(std::max<std::int64_t>(patience / std::chrono::milliseconds{1}, 1));
  push(Purpose::wait, std::array<std::string_view, 3>{"WAIT", replicas, milliseconds});
  pending_.back().deadline = latest_deadline_;
  wait_end_ = bytes_.size();
}

void RedisClient::wrote(std::size_t bytes) noexcept {
  written_ += bytes;
  WEIR_ASSERT(written_ <= bytes_.size());
}

Result<void> RedisClient::receive(std::string_view bytes) {
  const bool held = !in_.empty();
  if (held) in_.append(bytes);
  std::string_view rest = held ? std::string_view(in_) : bytes;
  while (!rest.empty()) {
    const resp::Parsed parsed = reply_.parse(rest);
    if (parsed == resp::Parsed::more) break;
    if (parsed == resp::Parsed::broken) {
      return Error{Fault::unavailable, "Redis sent an invalid reply: " + std::string(reply_.problem())};
    }
    const std::string_view text = rest.substr(0, reply_.size());
    rest.remove_prefix(reply_.size());
    if (reply_.root().type == resp::Type::push && !confirms_subscription()) {
      replies_.pushed(reply_);
      continue;
    }
    if (pending_.empty()) return Error{Fault::unavailable, "Redis sent a reply without a command"};
    if (auto taken = take_reply(text); !taken) return taken;
  }
  if (held) {
    in_.erase(0, in_.size() - rest.size());
  } else {
    in_.assign(rest);
  }
  return {};
}

// True if the push in reply_ is the answer to SUBSCRIBE.
bool RedisClient::confirms_subscription() const noexcept {
  return !pending_.empty() && pending_.front().purpose == Purpose::subscribe && reply_.values().size() > 1 &&
         reply_.values()[1].text == "subscribe";
}

// Handles the reply to the oldest command.
Result<void> RedisClient::take_reply(std::string_view text) {
  const PendingCommand pending = pending_.front();
  if (pending.purpose == Purpose::wait) {
    const bool enough = reply_.root().type == resp::Type::integer && reply_.root().integer >= options_.wait_replicas;
    wait_end_ = 0;
    drop_front();
    if (pending.given_up) return {};
    if (!enough) replies_.unreplicated();
    deliver_held();
    return {};
  }
  if (pending.purpose != Purpose::command) {
    auto accepted = take_handshake_reply(pending.purpose);
    drop_front();
    return accepted;
  }
  const bool forgotten = is_error(reply_) && parse_refusal(reply_.root().text).refusal == Refusal::no_script;
  if (!pending.given_up && forgotten && !pending.repeated && !options_.script.text.empty()) {
    load_and_repeat(pending);
  } else if (!pending.given_up && wait_end_ != 0 && !pending.reads && !is_error(reply_)) {
    held_.push_back({pending.tag, text.size()});
    held_bytes_ += text;
  } else if (!pending.given_up) {
    command_at_ = head_;
    command_size_ = pending.size;
    replies_.replied(pending.tag, reply_);
  }
  drop_front();
  return {};
}

// The receiver may send more commands; their replies come later.
void RedisClient::deliver_held() {
  const std::deque<HeldReply> held = std::exchange(held_, {});
  const std::string bytes = std::exchange(held_bytes_, {});
  std::string_view rest = bytes;
  for (const HeldReply& one : held) {
    reply_.parse(rest);
    command_size_ = 0;
    replies_.replied(one.tag, reply_);
    rest.remove_prefix(one.size);
  }
}

// Queues the script and the command again, after everything pending. The command keeps its deadline.
void RedisClient::load_and_repeat(PendingCommand pending) {
  const std::array<std::string_view, 3> load = {"SCRIPT", "LOAD", options_.script.text};
  constexpr std::array<std::string_view, 1> kAsking = {"ASKING"};
  push(Purpose::load, load);
  if (pending.asking) push(Purpose::asking, kAsking);
  bytes_.append(bytes_, head_, pending.size);
  pending.repeated = true;
  push(pending);
}

void RedisClient::drop_front() {
  const PendingCommand& front = pending_.front();
  head_ += front.size;
  if (front.early) --early_;
  buckets_answered_ += front.buckets;
  pending_.pop_front();
  // The server answered a command that was not written yet.
  written_ = std::max(written_, head_);
  if (head_ < kCutBytes || head_ * 2 < bytes_.size()) return;
  bytes_.erase(0, head_);
  written_ -= head_;
  if (wait_end_ != 0) wait_end_ -= head_;
  head_ = 0;
}

Result<void> RedisClient::take_handshake_reply(Purpose purpose) {
  if (purpose == Purpose::hello) return take_hello_reply();
  if (stage_ != Stage::handshake)
    return {};  // a script loaded again, or ASKING: the reply to the next command shows an error
  const bool must = purpose == Purpose::auth || purpose == Purpose::select || purpose == Purpose::load;
  if (is_error(reply_) && must) {
    constexpr std::string_view kCommands[] = {"AUTH", "SELECT", "SCRIPT LOAD"};
    const auto command = kCommands[static_cast<std::size_t>(purpose) - static_cast<std::size_t>(Purpose::auth)];
    return Error{Fault::unavailable, "Redis refused " + std::string(command) + ": " + quote(reply_.root().text)};
  }
  if (purpose == Purpose::load && reply_.root().text != options_.script.sha) {
    return Error{Fault::unavailable,
                 "Redis returned an unexpected SHA-1 for SCRIPT LOAD: " + quote(reply_.root().text)};
  }
  if (purpose == Purpose::info) read_maxmemory_policy();
  if (--handshake_left_ == 0) stage_ = Stage::ready;
  return {};
}

Result<void> RedisClient::take_hello_reply() {
  if (!is_error(reply_)) {
    continue_handshake(true);
    return {};
  }
  const std::string_view text = reply_.root().text;
  // An old server or a proxy that speaks RESP2 only.
  const bool unknown = text.starts_with("NOPROTO") || text.starts_with("ERR unknown command");
  if (!unknown) return Error{Fault::unavailable, "Redis refused HELLO: " + quote(text)};
  continue_handshake(false);
  return {};
}

void RedisClient::continue_handshake(bool resp3) {
  stage_ = Stage::handshake;
  const std::size_t before = pending_.size();
  if (!resp3 && logs_in()) {
    std::vector<std::string_view> login = {"AUTH"};
    if (!options_.username.empty()) login.push_back(options_.username);
    login.push_back(options_.password);
    push(Purpose::auth, login);
  }
  if (!resp3 && !options_.name.empty()) {
    const std::array<std::string_view, 3> name = {"CLIENT", "SETNAME", options_.name};
    push(Purpose::set_name, name);
  }
  if (options_.db != 0) {
    const std::string db = std::to_string(options_.db);
    const std::array<std::string_view, 2> choose = {"SELECT", db};
    push(Purpose::select, choose);
  }
  if (!options_.script.text.empty()) {
    const std::array<std::string_view, 3> load = {"SCRIPT", "LOAD", options_.script.text};
    push(Purpose::load, load);
  }
  constexpr std::array<std::string_view, 2> kInfo = {"INFO", "memory"};
  push(Purpose::info, kInfo);
  if (resp3 && !options_.channel.empty()) {
    const std::array<std::string_view, 2> subscribe = {"SUBSCRIBE", options_.channel};
    push(Purpose::subscribe, subscribe);
  }
  handshake_left_ = pending_.size() - before;
}

void RedisClient::read_maxmemory_policy() {
  constexpr std::string_view kField = "maxmemory_policy:";
  maxmemory_policy_.clear();
  if (is_error(reply_)) return;
  const std::string_view text = reply_.root().text;
  const std::size_t at = text.find(kField);
  if (at == std::string_view::npos) return;
  const std::string_view rest = text.substr(at + kField.size());
  maxmemory_policy_ = rest.substr(0, rest.find_first_of("\r\n"));
}

Time RedisClient::deadline() const noexcept {
  Time earliest = Time::max();
  for (const PendingCommand& pending : pending_) {
    if (pending.given_up || !has_deadline(pending)) continue;
    earliest = std::min(earliest, pending.deadline);
    if (early_ == 0) break;  // deadlines are in the order sent
  }
  return earliest;
}

void RedisClient::expire(Time now) {
  std::size_t at = head_;
  // The receiver may send more commands; those added need no check.
  for (std::size_t i = 0, count = pending_.size(); i < count; ++i) {
    PendingCommand& pending = pending_[i];
    const std::size_t begin = at;
    at += pending.size;
    if (pending.given_up || !has_deadline(pending)) continue;
    if (pending.deadline > now && early_ == 0) return;
    if (pending.deadline > now) continue;
    pending.given_up = true;
    if (pending.purpose == Purpose::wait) {
      replies_.unreplicated();
      deliver_held();
    } else {
      report_lost(pending, begin, Lost::late);
    }
  }
}

void RedisClient::report_lost(const PendingCommand& pending, std::size_t at, Lost how) {
  command_at_ = at;
  command_size_ = pending.size;
  replies_.lost(pending.tag, how);
}

void RedisClient::close(std::size_t unwritten_bytes) {
  if (stage_ == Stage::closed) return;
  stage_ = Stage::closed;
  written_ -= std::min(unwritten_bytes, written_);
  const std::deque<PendingCommand> commands = std::exchange(pending_, {});
  std::size_t at = head_;
  if (!held_.empty()) replies_.unreplicated();
  deliver_held();
  for (const PendingCommand& pending : commands) {
    const std::size_t begin = at;
    at += pending.size;
    if (pending.given_up || pending.purpose != Purpose::command) continue;
    report_lost(pending, begin, at > written_ ? Lost::unsent : Lost::unknown);
  }
  bytes_.clear();
  in_.clear();
  head_ = written_ = early_ = handshake_left_ = command_at_ = command_size_ = wait_end_ = 0;
  wait_by_ = Time::max();
  latest_deadline_ = Time{};
  buckets_answered_ = buckets_sent_;
}

}  // namespace weir::redis
