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

// Answered commands are cut off the front of the bytes when they are that many, and most of them.
constexpr std::size_t kCutBytes = 64u << 10;

bool is_error(const resp::Reply& reply) {
  return reply.root().type == resp::Type::error;
}

// EVALSHA, the script's name, how many keys.
std::uint16_t buckets_of(std::span<const std::string_view> arguments) noexcept {
  std::uint16_t keys = 0;
  if (arguments.size() < 3 || arguments[0] != "EVALSHA") return 1;
  std::from_chars(arguments[2].data(), arguments[2].data() + arguments[2].size(), keys);
  return std::max<std::uint16_t>(keys, 1);
}

}  // namespace

void RedisClient::open() {
  WEIR_ASSERT(stage_ == Stage::closed && entries_.empty());
  stage_ = Stage::greeting;
  const std::string_view user = options_.username.empty() ? std::string_view("default") : options_.username;
  std::vector<std::string_view> hello = {"HELLO", "3"};
  if (!options_.password.empty()) hello.insert(hello.end(), {"AUTH", user, options_.password});
  if (!options_.name.empty()) hello.insert(hello.end(), {"SETNAME", options_.name});
  push(Purpose::greet, hello);
}

void RedisClient::push(Purpose purpose, std::span<const std::string_view> arguments) {
  const std::size_t before = bytes_.size();
  resp::write_command(arguments, bytes_);
  Entry entry;
  entry.size = bytes_.size() - before;
  entry.purpose = purpose;
  entries_.push_back(entry);
}

// Deadlines come in the order sent, but for what was sent elsewhere or before.
void RedisClient::push(Entry entry) {
  if (!entry.reads) seal_by_ = std::min(seal_by_, entry.deadline);
  entry.early = entry.deadline < latest_deadline_;
  if (entry.early) ++early_;
  latest_deadline_ = std::max(latest_deadline_, entry.deadline);
  buckets_sent_ += entry.buckets;
  entries_.push_back(entry);
}

bool RedisClient::has_room(std::size_t bytes) const noexcept {
  return is_ready() && entries_.size() < bounds::redis_unanswered_max &&
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
  Entry entry;
  entry.tag = tag;
  entry.size = bytes_.size() - before;
  entry.deadline = deadline;
  entry.reads = effect == Effect::reads;
  entry.buckets = buckets_of(arguments);
  push(entry);
  return true;
}

bool RedisClient::send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking) {
  if (!has_room(bytes.size())) return false;
  constexpr std::array<std::string_view, 1> kAsking = {"ASKING"};
  // First, because `bytes` may be our own command(), which moves when anything is appended.
  const std::string copy(bytes);
  if (asking) push(Purpose::asking, kAsking);
  bytes_ += copy;
  Entry entry;
  entry.tag = tag;
  entry.size = copy.size();
  entry.buckets = 1;
  entry.deadline = deadline;
  entry.asking = asking;
  push(entry);
  return true;
}

// It is given up with the last of those that it is for. Half of the time left, so that its reply comes before that:
// what had to wait for the one before has less of it.
void RedisClient::seal(Time now, Duration patience) {
  if (options_.wait_replicas == 0 || !is_ready() || sealed_ != 0) return;
  const Time by = std::exchange(seal_by_, Time::max());
  if (by == Time::max() || patience <= Duration::zero()) return;
  patience = std::min(patience, (by - now) / 2);
  const std::string replicas = std::to_string(options_.wait_replicas);
  const std::string milliseconds = std::to_string(std::max<std::int64_t>(patience / std::chrono::milliseconds{1}, 1));
  push(Purpose::wait, std::array<std::string_view, 3>{"WAIT", replicas, milliseconds});
  entries_.back().deadline = latest_deadline_;
  sealed_ = bytes_.size();
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
      return Error{Fault::unavailable, "Redis answers with what is not RESP: " + std::string(reply_.problem())};
    }
    const std::string_view text = rest.substr(0, reply_.size());
    rest.remove_prefix(reply_.size());
    if (reply_.root().type == resp::Type::push && !confirms_channel()) {
      replies_.pushed(reply_);
      continue;
    }
    if (entries_.empty()) return Error{Fault::unavailable, "Redis answers what nobody asked"};
    if (auto taken = take(text); !taken) return taken;
  }
  if (held) {
    in_.erase(0, in_.size() - rest.size());
  } else {
    in_.assign(rest);
  }
  return {};
}

// A subscription is answered by a push.
bool RedisClient::confirms_channel() const noexcept {
  return !entries_.empty() && entries_.front().purpose == Purpose::subscribe && reply_.values().size() > 1 &&
         reply_.values()[1].text == "subscribe";
}

// The reply to the oldest command.
Result<void> RedisClient::take(std::string_view text) {
  const Entry entry = entries_.front();
  if (entry.purpose == Purpose::wait) {
    const bool enough = reply_.root().type == resp::Type::integer && reply_.root().integer >= options_.wait_replicas;
    sealed_ = 0;
    drop_front();
    if (entry.given_up) return {};
    if (!enough) replies_.unreplicated();
    deliver_held();
    return {};
  }
  if (entry.purpose != Purpose::asked) {
    auto agreed = agree(entry.purpose);
    drop_front();
    return agreed;
  }
  const bool forgotten = is_error(reply_) && parse_refusal(reply_.root().text).refusal == Refusal::no_script;
  if (!entry.given_up && forgotten && !entry.again && !options_.script.text.empty()) {
    load_and_repeat(entry);
  } else if (!entry.given_up && sealed_ != 0 && !entry.reads && !is_error(reply_)) {
    held_.push_back({entry.tag, text.size()});
    held_bytes_ += text;
  } else if (!entry.given_up) {
    command_at_ = head_;
    command_size_ = entry.size;
    replies_.replied(entry.tag, reply_);
  }
  drop_front();
  return {};
}

// Whoever hears may send more: that is answered later.
void RedisClient::deliver_held() {
  const std::deque<Held> held = std::exchange(held_, {});
  const std::string bytes = std::exchange(held_bytes_, {});
  std::string_view rest = bytes;
  for (const Held& one : held) {
    reply_.parse(rest);
    command_size_ = 0;
    replies_.replied(one.tag, reply_);
    rest.remove_prefix(one.size);
  }
}

// Behind everything that waits. It keeps its deadline.
void RedisClient::load_and_repeat(Entry entry) {
  const std::array<std::string_view, 3> load = {"SCRIPT", "LOAD", options_.script.text};
  constexpr std::array<std::string_view, 1> kAsking = {"ASKING"};
  push(Purpose::load, load);
  if (entry.asking) push(Purpose::asking, kAsking);
  bytes_.append(bytes_, head_, entry.size);
  entry.again = true;
  push(entry);
}

void RedisClient::drop_front() {
  const Entry& front = entries_.front();
  head_ += front.size;
  if (front.early) --early_;
  buckets_landed_ += front.buckets;
  entries_.pop_front();
  // A reply to what was never written: the peer is confused, but we are not.
  written_ = std::max(written_, head_);
  if (head_ < kCutBytes || head_ * 2 < bytes_.size()) return;
  bytes_.erase(0, head_);
  written_ -= head_;
  if (sealed_ != 0) sealed_ -= head_;
  head_ = 0;
}

Result<void> RedisClient::agree(Purpose purpose) {
  if (purpose == Purpose::greet) return greeted();
  if (stage_ != Stage::agreeing) return {};  // a script loaded again, or an ASKING: the command behind it tells
  const bool must = purpose == Purpose::login || purpose == Purpose::choose || purpose == Purpose::load;
  if (is_error(reply_) && must) {
    constexpr std::string_view kSteps[] = {"AUTH", "SELECT", "SCRIPT LOAD"};
    const auto step = kSteps[static_cast<std::size_t>(purpose) - static_cast<std::size_t>(Purpose::login)];
    return Error{Fault::unavailable, "Redis refused " + std::string(step) + ": " + quote(reply_.root().text)};
  }
  if (purpose == Purpose::load && reply_.root().text != options_.script.sha) {
    return Error{Fault::unavailable, "Redis knows our script by another name: " + quote(reply_.root().text)};
  }
  if (purpose == Purpose::survey) survey();
  if (--to_agree_ == 0) stage_ = Stage::ready;
  return {};
}

Result<void> RedisClient::greeted() {
  if (!is_error(reply_)) {
    agree_on_rest(true);
    return {};
  }
  const std::string_view text = reply_.root().text;
  // A proxy that speaks RESP2 only.
  const bool unknown = text.starts_with("NOPROTO") || text.starts_with("ERR unknown command");
  if (!unknown) return Error{Fault::unavailable, "Redis refused HELLO: " + quote(text)};
  agree_on_rest(false);
  return {};
}

void RedisClient::agree_on_rest(bool hello) {
  stage_ = Stage::agreeing;
  const std::size_t before = entries_.size();
  if (!hello && !options_.password.empty()) {
    std::vector<std::string_view> login = {"AUTH"};
    if (!options_.username.empty()) login.push_back(options_.username);
    login.push_back(options_.password);
    push(Purpose::login, login);
  }
  if (!hello && !options_.name.empty()) {
    const std::array<std::string_view, 3> name = {"CLIENT", "SETNAME", options_.name};
    push(Purpose::name, name);
  }
  if (options_.db != 0) {
    const std::string db = std::to_string(options_.db);
    const std::array<std::string_view, 2> choose = {"SELECT", db};
    push(Purpose::choose, choose);
  }
  if (!options_.script.text.empty()) {
    const std::array<std::string_view, 3> load = {"SCRIPT", "LOAD", options_.script.text};
    push(Purpose::load, load);
  }
  constexpr std::array<std::string_view, 2> kSurvey = {"INFO", "memory"};
  push(Purpose::survey, kSurvey);
  if (hello && !options_.channel.empty()) {
    const std::array<std::string_view, 2> subscribe = {"SUBSCRIBE", options_.channel};
    push(Purpose::subscribe, subscribe);
  }
  to_agree_ = entries_.size() - before;
}

void RedisClient::survey() {
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
  for (const Entry& entry : entries_) {
    if (entry.given_up || !is_asked(entry)) continue;
    earliest = std::min(earliest, entry.deadline);
    if (early_ == 0) break;  // in the order sent
  }
  return earliest;
}

void RedisClient::expire(Time now) {
  std::size_t at = head_;
  // Whoever hears of it may send more: what is added needs no look.
  for (std::size_t i = 0, count = entries_.size(); i < count; ++i) {
    Entry& entry = entries_[i];
    const std::size_t begin = at;
    at += entry.size;
    if (entry.given_up || !is_asked(entry)) continue;
    if (entry.deadline > now && early_ == 0) return;
    if (entry.deadline > now) continue;
    entry.given_up = true;
    if (entry.purpose == Purpose::wait) {
      replies_.unreplicated();
      deliver_held();
    } else {
      lose(entry, begin, Lost::late);
    }
  }
}

void RedisClient::lose(const Entry& entry, std::size_t at, Lost how) {
  command_at_ = at;
  command_size_ = entry.size;
  replies_.lost(entry.tag, how);
}

void RedisClient::close(std::size_t unwritten_bytes) {
  if (stage_ == Stage::closed) return;
  stage_ = Stage::closed;
  written_ -= std::min(unwritten_bytes, written_);
  const std::deque<Entry> entries = std::exchange(entries_, {});
  std::size_t at = head_;
  if (!held_.empty()) replies_.unreplicated();
  deliver_held();
  for (const Entry& entry : entries) {
    const std::size_t begin = at;
    at += entry.size;
    if (entry.given_up || entry.purpose != Purpose::asked) continue;
    lose(entry, begin, at > written_ ? Lost::unsent : Lost::unknown);
  }
  bytes_.clear();
  in_.clear();
  head_ = written_ = early_ = to_agree_ = command_at_ = command_size_ = sealed_ = 0;
  seal_by_ = Time::max();
  latest_deadline_ = Time{};
  buckets_landed_ = buckets_sent_;
}

}  // namespace weir::redis
