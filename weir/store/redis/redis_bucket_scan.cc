#include "weir/store/redis/redis_bucket_scan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/algorithm/calendar.h"
#include "weir/base/text.h"
#include "weir/redis/targets.h"

namespace weir::redis {
namespace {

// How long to wait for a master whose connection was lost because of a reply.
constexpr Duration kPatience = std::chrono::seconds{3};
constexpr Duration kLookEvery = std::chrono::milliseconds{20};

// The latest clock reading accepted: the year 2255.
constexpr std::uint64_t kSecondsMax = 9'000'000'000;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// A master's position in the scan order, the same on every server.
std::uint64_t rank_of(const RedisNode& node) {
  return siphash13(HashKey{}, node.target().print());
}

std::vector<RedisNode*> in_order(std::vector<RedisNode*> masters) {
  std::ranges::sort(masters, {}, [](const RedisNode* node) { return rank_of(*node); });
  return masters;
}

// SCAN counts with the highest bit first, so the share of the keys before a cursor is its bit reversal / 2^64.
std::uint32_t millionths_before(std::uint64_t scan) {
  std::uint64_t mirrored = 0;
  for (int bit = 0; bit < 64; ++bit, scan >>= 1) mirrored = mirrored << 1 | (scan & 1);
  return static_cast<std::uint32_t>((mirrored >> 32) * 1'000'000 >> 32);
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (fault != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::string hexadecimal(std::uint64_t value) {
  char text[16];
  const auto [end, fault] = std::to_chars(text, text + sizeof text, value, 16);
  static_cast<void>(fault);  // 16 digits hold every number
  return std::string(text, end);
}

// States: "1700000000123456789" is a TAT. "28333334:5" is the minute in which a quota's window ends and what is used of
// it; "1700000040:5" is the same with the second, for windows of a fixed length. Nothing: not a state, or an unused
// quota.
std::optional<StoredBucket> bucket_of(Key key, std::string_view state, Wall now) {
  StoredBucket bucket{key, Duration::zero(), 0};
  if (key.kind == Kind::bucket) {
    const Result<std::int64_t> tat = parse_integer(state);
    if (!tat || *tat < 0) return {};
    bucket.backlog = Wall{Duration{*tat}} - now;
    return bucket;
  }
  const std::size_t colon = state.find(':');
  if (colon == std::string_view::npos) return {};
  const Result<std::int64_t> end = parse_integer(state.substr(0, colon));
  const Result<std::int64_t> used = parse_integer(state.substr(colon + 1));
  if (!end || !used || *end < 0 || *end > quota::kSecondsMax || *used < 0 || *used > bounds::quota_max) return {};
  const std::int64_t seconds = *end <= quota::kMinutesMax ? *end * 60 : *end;
  if (seconds % 60 != 0 && *used > bounds::quick_quota_max) return {};
  if (*used == 0) return {};  // as after a reset: nothing is used
  bucket.quota_state = quota::pack({seconds, *used});
  return bucket;
}

Error strange_reply() {
  return Error{Fault::unavailable, "Redis sent an unexpected reply to SCAN"};
}

}  // namespace

std::optional<Key> key_within(std::string_view text, std::string_view prefix, std::string_view hash_tag,
                              std::string& room) {
  if (!text.starts_with(prefix)) return {};
  text.remove_prefix(prefix.size());
  if (!hash_tag.empty()) {
    const bool tagged = text.size() > hash_tag.size() + 2 && text.front() == '{' &&
                        text.substr(1).starts_with(hash_tag) && text[hash_tag.size() + 1] == '}';
    if (!tagged) return {};
    text.remove_prefix(hash_tag.size() + 2);
  }
  if (text.size() < 2 || text[1] != ':') return {};
  const char letter = text.front();
  text.remove_prefix(2);
  if (letter == 'b') return Key{text, Kind::bucket};
  if (letter == 'w') return Key{text, Kind::quota};
  if (letter != 'a') return {};
  room.assign(kOwnPrefix).append(text);
  return Key{room, Kind::bucket};
}

// The position of a scan: "<master>.<scan>" in hexadecimal, followed by ".<page end>.<last seen>" in the middle of a
// page. A trailing "s" means small pages.
struct RedisBucketScan::Place {
  std::uint64_t master = 0;
  std::uint64_t scan = 0;
  bool inside = false;
  std::uint64_t page_end = 0;
  std::uint64_t last = 0;
  bool few = false;

  std::string print() const {
    std::string out = hexadecimal(master) + "." + hexadecimal(scan);
    if (inside) out += "." + hexadecimal(page_end) + "." + hexadecimal(last);
    return few ? out + "s" : out;
  }

  static std::optional<Place> read(std::string_view text) {
    Place place;
    place.few = text.ends_with('s');
    if (place.few) text.remove_suffix(1);
    std::array<std::uint64_t, 4> parts{};
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      const std::size_t dot = std::min(text.find('.'), text.size());
      const auto part = number(text.substr(0, dot), 16);
      if (!part || count == parts.size()) return {};
      parts[count] = *part;
      more = dot < text.size();
      text.remove_prefix(std::min(dot + 1, text.size()));
    }
    if (count != 2 && count != 4) return {};
    place.master = parts[0];
    place.scan = parts[1];
    place.inside = count == 4;
    place.page_end = parts[2];
    place.last = parts[3];
    return place;
  }
};

// One step of a scan.
struct RedisBucketScan::Page {
  Place place;
  RedisNode* node = nullptr;  // valid while the topology has it
  bool forgetting = false;
  Look look = Look::keys;
  Visit visit;
  Done done;
  struct Item {
    std::uint64_t hash = 0;
    std::string key;  // as Redis has it
    std::optional<std::string> state;
  };
  std::vector<Item> items;
  std::uint64_t next = 0;  // SCAN's cursor after this page
  Wall now{};              // Redis's clock
  std::size_t waiting = 0;
  std::uint64_t forgotten = 0;
  std::optional<Error> error;
};

RedisBucketScan::RedisBucketScan(Loop& loop, RedisStore& store, Options options)
    : loop_(loop), store_(store), options_(std::move(options)) {
  std::string begin = options_.key_prefix;
  if (!options_.hash_tag.empty()) begin.append("{").append(options_.hash_tag).append("}");
  pattern_ = escaped(begin) + "[bwa]:*";
}

void RedisBucketScan::visit(std::string_view cursor, Look look, Now, const Visit& visit, const Done& done) {
  auto page = std::make_shared<Page>();
  page->look = look;
  page->visit = visit;
  page->done = done;
  begin(cursor, std::move(page));
}

void RedisBucketScan::forget(std::string_view cursor, Now, const Done& done) {
  auto page = std::make_shared<Page>();
  page->forgetting = true;
  page->done = done;
  begin(cursor, std::move(page));
}

void RedisBucketScan::begin(std::string_view cursor, std::shared_ptr<Page> page) {
  const std::vector<RedisNode*> masters = in_order(store_.topology().masters());
  if (masters.empty()) return page->done(Error{Fault::unavailable, "Redis cannot be reached"});
  if (cursor.empty()) {
    page->place.master = rank_of(*masters.front());
  } else {
    const auto place = Place::read(cursor);
    if (!place) return page->done(Error{Fault::invalid, "the cursor was not issued by this server"});
    page->place = *place;
  }
  scan(page);
}

void RedisBucketScan::scan(const std::shared_ptr<Page>& page) {
  page->node = nullptr;
  for (RedisNode* const node : store_.topology().masters()) {
    if (rank_of(*node) == page->place.master) page->node = node;
  }
  if (page->node == nullptr) {
    return page->done(Error{Fault::unavailable, "the set of Redis masters has changed; start the listing again"});
  }
  const std::string from = std::to_string(page->place.scan);
  const std::string count = std::to_string(page->place.few ? bounds::redis_scan_keys_few : bounds::redis_scan_keys);
  // Buckets are strings. Keys of other types under our prefix are not listed, but a reset of all removes them too.
  const std::array<std::string_view, 8> words = {"SCAN", from, "MATCH", pattern_, "COUNT", count, "TYPE", "string"};
  const std::span<const std::string_view> command(words.data(), words.size() - (page->forgetting ? 2 : 0));
  store_.ask(*page->node, command, [this, page](const Result<const resp::Reply*>& reply) {
    if (reply) return scanned(page, **reply);
    // With very long keys, a page may exceed the reply limit, which closes the connection. Retry with fewer keys.
    if (page->place.few || reply.error().fault != Fault::timeout) return page->done(reply.error());
    page->place.few = true;
    scan_again(page, reply.error(), loop_.now().time + kPatience);
  });
}

void RedisBucketScan::scan_again(const std::shared_ptr<Page>& page, const Error& error, Time until) {
  if (loop_.now().time >= until) return page->done(error);
  loop_.at(loop_.now().time + kLookEvery, [this, page, error, until] {
    const std::vector<RedisNode*> masters = store_.topology().masters();
    const bool up = std::ranges::any_of(
        masters, [&](const RedisNode* node) { return rank_of(*node) == page->place.master && node->is_up(); });
    up ? scan(page) : scan_again(page, error, until);
  });
}

void RedisBucketScan::scanned(const std::shared_ptr<Page>& page, const resp::Reply& reply) {
  const Values values = reply.values();
  if (!is_aggregate(values.front()) || values.front().count != 2) return page->done(strange_reply());
  Elements elements(values);
  const Values cursor = elements.next();
  const Values keys = elements.next();
  const auto next = is_text(cursor.front()) ? number(cursor.front().text, 10) : std::nullopt;
  if (!next || !is_aggregate(keys.front())) return page->done(strange_reply());
  page->next = *next;
  std::string room;
  for (const resp::Reply::Value& value : keys.subspan(1)) {
    if (!is_text(value) || !key_within(value.text, options_.key_prefix, options_.hash_tag, room)) continue;
    page->items.push_back({siphash13(options_.order, value.text), std::string(value.text), {}});
  }
  std::ranges::sort(page->items, [](const Page::Item& a, const Page::Item& b) {
    return std::tie(a.hash, a.key) < std::tie(b.hash, b.key);
  });
  const auto twice = std::ranges::unique(page->items, {}, &Page::Item::key);
  page->items.erase(twice.begin(), twice.end());
  // It is the same page only if it ends at the same cursor; otherwise it may contain other keys.
  if (page->place.inside && page->place.page_end == page->next) {
    std::erase_if(page->items, [&](const Page::Item& item) { return item.hash <= page->place.last; });
  }
  if (page->forgetting) return remove_keys(page);
  if (page->look == Look::keys || page->items.empty()) return show(page);
  read_states(page);
}

void RedisBucketScan::read_states(const std::shared_ptr<Page>& page) {
  page->waiting = page->items.size() + 1;
  store_.together([&] {
    constexpr std::array<std::string_view, 1> kTime = {"TIME"};
    store_.ask(*page->node, kTime, [this, page](const Result<const resp::Reply*>& reply) {
      if (!reply) {
        page->error = reply.error();
      } else if (const Values values = (*reply)->values(); values.size() == 3) {
        const auto seconds = number(values[1].text, 10);
        const auto micros = number(values[2].text, 10);
        if (seconds && micros && *seconds < kSecondsMax) {
          page->now = Wall{std::chrono::seconds{*seconds} + std::chrono::microseconds{*micros % 1'000'000}};
        }
      }
      answered(page);
    });
    for (std::size_t i = 0; i < page->items.size(); ++i) {
      const std::array<std::string_view, 2> get = {"GET", page->items[i].key};
      store_.ask(page->items[i].key, get, [this, page, i](const Result<const resp::Reply*>& reply) {
        if (!reply) {
          page->error = reply.error();
        } else if (is_text((*reply)->root())) {
          page->items[i].state = std::string((*reply)->root().text);
        }
        answered(page);
      });
    }
  });
}

void RedisBucketScan::remove_keys(const std::shared_ptr<Page>& page) {
  page->waiting = page->items.size() + 1;
  store_.together([&] {
    for (const Page::Item& item : page->items) {
      const std::array<std::string_view, 2> remove = {"DEL", item.key};
      store_.ask(item.key, remove, [this, page](const Result<const resp::Reply*>& reply) {
        if (!reply) {
          page->error = reply.error();
        } else if ((*reply)->root().integer > 0) {
          ++page->forgotten;
        }
        answered(page);
      });
    }
  });
  answered(page);
}

void RedisBucketScan::answered(const std::shared_ptr<Page>& page) {
  if (--page->waiting > 0) return;
  if (page->error) return page->done(*page->error);
  page->forgetting ? end(*page, false, 0) : show(page);
}

void RedisBucketScan::show(const std::shared_ptr<Page>& page) {
  std::string room;
  for (const Page::Item& item : page->items) {
    const auto key = key_within(item.key, options_.key_prefix, options_.hash_tag, room);
    std::optional<StoredBucket> bucket = StoredBucket{*key, Duration::zero(), 0};
    if (page->look == Look::states) bucket = item.state ? bucket_of(*key, *item.state, page->now) : std::nullopt;
    if (!bucket) continue;  // expired in the meantime, or not a bucket of ours
    if (page->visit(*bucket)) continue;
    return end(*page, &item != &page->items.back(), item.hash);
  }
  end(*page, false, 0);
}

// `stopped`: the visitor stopped in the middle of the page, after `last`.
void RedisBucketScan::end(const Page& page, bool stopped, std::uint64_t last) {
  Step step;
  step.forgotten = page.forgotten;
  Place place{page.place.master, page.next, false, 0, 0, page.place.few};
  const std::vector<RedisNode*> masters = in_order(store_.topology().masters());
  if (stopped) {
    place = {page.place.master, page.place.scan, true, page.next, last, page.place.few};
  } else if (page.next == 0) {
    const auto next =
        std::ranges::find_if(masters, [&](const RedisNode* node) { return rank_of(*node) > place.master; });
    if (next == masters.end()) {
      step.millionths = 1'000'000;
      return page.done(step);
    }
    place.master = rank_of(**next);
    step.millionths =
        static_cast<std::uint32_t>(static_cast<std::size_t>(next - masters.begin()) * 1'000'000 / masters.size());
  } else if (masters.size() == 1) {
    step.millionths = millionths_before(page.next);
  }
  step.cursor = place.print();
  page.done(step);
}

}  // namespace weir::redis
