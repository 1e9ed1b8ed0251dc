#include "weir/store/memory/memory_bucket_scan.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "weir/algorithm/calendar.h"

namespace weir {
namespace {

// Groups per step; most of them are small or empty.
constexpr std::size_t kGroupsPerStep = 1024;

// A cursor is the next hash, in hex.
std::string print_cursor(std::uint64_t h) {
  char text[16];
  const auto [end, fault] = std::to_chars(text, text + sizeof text, h, 16);
  static_cast<void>(fault);  // 16 digits are enough for every hash
  return std::string(text, end);
}

std::optional<std::uint64_t> read_cursor(std::string_view text) {
  std::uint64_t h = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), h, 16);
  if (fault != std::errc{} || end != text.data() + text.size()) return {};
  return h;
}

Error no_such_cursor() {
  return Error{Fault::invalid, "the cursor was not issued by this server"};
}

BucketScan::Step step_at(std::uint64_t next) {
  // Hashes are uniformly distributed, so the share of buckets before one is its share of the hash range.
  return {print_cursor(next), static_cast<std::uint32_t>(scale(next, 1'000'000)), 0};
}

// The lowest hash of a group.
std::uint64_t begin_of(const Table& table, std::size_t group) {
  std::uint64_t low = 0;
  std::uint64_t high = ~std::uint64_t{0};
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (table.group_of(middle) < group) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

struct Copy {
  std::uint64_t h;
  Kind kind;
  State state;
  std::string name;
};

struct Part {
  std::vector<Copy> buckets;          // in hash order
  std::optional<std::uint64_t> next;  // where the rest of the group starts; unset: nothing is left
};

// Returns about `most` buckets of a group, which may have more than ten thousand. Copies them, because visitors may be
// slow and the group is locked during Table::visit().
Part copy_part(const Table& table, std::size_t group, std::uint64_t from, std::size_t most) {
  Part part;
  std::vector<std::uint64_t> hashes;
  table.visit(group, [&](const Table::Bucket& bucket) {
    if (bucket.h >= from && bucket.state != 0) hashes.push_back(bucket.h);
  });
  if (hashes.size() > most) {
    const auto first_left = hashes.begin() + static_cast<std::ptrdiff_t>(most);
    std::ranges::nth_element(hashes, first_left);
    part.next = *first_left;
  }
  table.visit(group, [&](const Table::Bucket& bucket) {
    if (bucket.h < from || bucket.state == 0 || (part.next && bucket.h >= *part.next)) return;
    part.buckets.push_back({bucket.h, bucket.kind, bucket.state, std::string(bucket.name)});
  });
  std::ranges::sort(part.buckets, {}, &Copy::h);
  return part;
}

}  // namespace

void MemoryBucketScan::visit(std::string_view cursor, Look, Now now, const Visit& visit, const Done& done) {
  const std::optional<std::uint64_t> from = cursor.empty() ? 0 : read_cursor(cursor);
  if (!from) return done(no_such_cursor());
  std::size_t seen = 0;
  std::size_t group = table_.group_of(*from);
  for (std::size_t groups = 0; group < table_.groups(); ++group, ++groups) {
    if (seen >= kBucketsPerStep || groups >= kGroupsPerStep) return done(step_at(begin_of(table_, group)));
    const Part part = copy_part(table_, group, *from, kBucketsPerStep - seen);
    for (const Copy& bucket : part.buckets) {
      ++seen;
      const bool quota = bucket.kind == Kind::quota;
      const Duration backlog = Time{Duration{static_cast<std::int64_t>(bucket.state)}} - now.time;
      if (quota && quota::unpack(bucket.state).used == 0) continue;  // as after a reset: nothing is used
      const bool more = visit(
          {Key{bucket.name, bucket.kind}, quota ? Duration::zero() : backlog, quota ? bucket.state : std::uint64_t{0}});
      if (!more && bucket.h == ~std::uint64_t{0}) return done(Step{});
      if (!more) return done(step_at(bucket.h + 1));
    }
    if (part.next) return done(step_at(*part.next));
  }
  done(Step{{}, 1'000'000, 0});
}

void MemoryBucketScan::forget(std::string_view cursor, Now now, const Done& done) {
  const std::optional<std::uint64_t> from = cursor.empty() ? 0 : read_cursor(cursor);
  if (!from) return done(no_such_cursor());
  std::size_t seen = 0;
  std::uint64_t forgotten = 0;
  std::size_t group = table_.group_of(*from);
  for (std::size_t groups = 0; group < table_.groups(); ++group, ++groups) {
    if (seen >= kBucketsPerStep || groups >= kGroupsPerStep) {
      Step step = step_at(begin_of(table_, group));
      step.forgotten = forgotten;
      return done(step);
    }
    const Part part = copy_part(table_, group, *from, kBucketsPerStep - seen);
    for (const Copy& bucket : part.buckets) {
      ++seen;
      if (table_.reset(bucket.h, bucket.kind, now)) ++forgotten;
    }
    if (part.next) {
      Step step = step_at(*part.next);
      step.forgotten = forgotten;
      return done(step);
    }
  }
  done(Step{{}, 1'000'000, forgotten});
}

}  // namespace weir
