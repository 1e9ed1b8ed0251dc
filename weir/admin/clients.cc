// Lists of clients: GET /ratelimit/clients and GET /ratelimit/top.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "weir/admin/calls.h"
#include "weir/admin/client_row.h"
#include "weir/admin/scan.h"
#include "weir/base/siphash.h"
#include "weir/base/text.h"

namespace weir::admin {
namespace {

enum class Sort : unsigned char { none, denied, requests, remaining };

struct Listing {
  std::string limit;   // empty: all
  std::string prefix;  // of the id or the identifier
  Sort sort = Sort::none;
  std::size_t count = 100;
};

// A row's position in a sorted list: the sort value, then a hash that separates clients without naming them, because
// cursors are visible.
struct Rank {
  std::int64_t value = 0;  // the lowest comes first
  std::uint64_t tie = 0;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

std::string print_cursor(const Rank& rank) {
  char tie[16];
  const auto [end, fault] = std::to_chars(tie, tie + sizeof tie, rank.tie, 16);
  static_cast<void>(fault);  // 16 digits are enough for every hash
  return std::to_string(rank.value) + "." + std::string(tie, end);
}

std::optional<Rank> read_cursor(std::string_view text) {
  Rank rank;
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return {};
  const Result<std::int64_t> value = parse_integer(text.substr(0, dot));
  const std::string_view tie = text.substr(dot + 1);
  const auto [end, fault] = std::from_chars(tie.data(), tie.data() + tie.size(), rank.tie, 16);
  if (!value || fault != std::errc{} || end != tie.data() + tie.size()) return {};
  rank.value = *value;
  return rank;
}

Rank rank_of(const ClientRow& row, std::string_view key, Sort sort) {
  Rank rank;
  rank.tie = siphash13(HashKey{}, key) ^ static_cast<std::uint64_t>(row.kind);
  if (sort == Sort::denied) rank.value = -static_cast<std::int64_t>(row.denied());
  if (sort == Sort::requests) rank.value = -static_cast<std::int64_t>(row.requests());
  if (sort == Sort::remaining) rank.value = row.remaining.value_or(std::numeric_limits<Count>::max());
  return rank;
}

class ClientList final : public Collector {
 public:
  ClientList(const AdminShared& shared, Listing listing, std::optional<Rank> after)
      : clients_(shared), listing_(std::move(listing)), after_(after) {}

  bool take(const StoredBucket& bucket, Now now) override {
    const auto row = clients_.row(bucket, now);
    if (!row || !wanted(*row)) return true;
    if (listing_.sort == Sort::none) {
      rows_.emplace(Rank{static_cast<std::int64_t>(rows_.size()), 0}, *row);
      return rows_.size() < listing_.count;
    }
    const Rank rank = rank_of(*row, bucket.key.text, listing_.sort);
    if (after_ && rank <= *after_) return true;
    if (rows_.contains(rank)) return true;  // a store may return a bucket twice
    // Keeps one row more than a page, which shows whether there is a next page.
    rows_.emplace(rank, *row);
    if (rows_.size() > listing_.count + 1) rows_.erase(std::prev(rows_.end()));
    return true;
  }

  Outcome reply(const std::string& cursor) override {
    std::string next = cursor;
    if (listing_.sort != Sort::none) {
      const bool more = rows_.size() > listing_.count;
      if (more) rows_.erase(std::prev(rows_.end()));
      next = more ? print_cursor(rows_.rbegin()->first) : std::string();
    }
    Reply reply;
    JsonWriter json(reply.content);
    json.begin_object().key("clients").begin_array();
    for (const auto& [rank, row] : rows_) {
      begin_row(row, json);
      json.end_object();
    }
    json.end_array().key("cursor").string(next).end_object();
    return reply;
  }

 private:
  bool wanted(const ClientRow& row) const {
    if (!listing_.limit.empty() && row.limit != listing_.limit) return false;
    return row.id.starts_with(listing_.prefix) || row.identifier.starts_with(listing_.prefix);
  }

  Clients clients_;
  Listing listing_;
  std::optional<Rank> after_;
  std::multimap<Rank, ClientRow> rows_;
};

std::optional<Sort> read_sort(std::string_view word) {
  if (word.empty()) return Sort::none;
  if (word == "denied") return Sort::denied;
  if (word == "requests") return Sort::requests;
  if (word == "remaining") return Sort::remaining;
  return {};
}

std::optional<TopBy> read_by(std::string_view word) {
  for (const TopBy by : {TopBy::requests, TopBy::denied, TopBy::shadow_denied}) {
    if (word == name_of(by)) return by;
  }
  return {};
}

Reply bad_value(std::string_view message) {
  return refuse(400, "bad_value", message);
}

}  // namespace

Outcome list_clients(AdminShared& shared, const Request& request) {
  const Parameters& given = request.parameters;
  Listing listing;
  listing.limit = given["limit"];
  listing.prefix = given["prefix"];
  if (!listing.limit.empty() && shared.reloader.policy()->find(listing.limit) == nullptr) {
    return refuse(404, "unknown_limit", shared.reloader.policy()->unknown_limit(listing.limit).detail);
  }
  const std::optional<Sort> sort = read_sort(given["sort"]);
  if (!sort) return bad_value("sort " + quote(given["sort"]) + " must be denied, requests or remaining");
  listing.sort = *sort;
  const auto count = given.number("n", listing.count, 1, bounds::admin_page_max);
  if (!count) return bad_value(count.error().detail);
  listing.count = *count;
  std::optional<Rank> after;
  std::string cursor(given["cursor"]);
  if (*sort != Sort::none && !cursor.empty()) {
    after = read_cursor(cursor);
    if (!after) return bad_value("the cursor is not from this list; start again without it");
    cursor.clear();
  }
  return std::make_unique<Scan>(shared.bucket_scan, BucketScan::Look::states,
                                std::make_unique<ClientList>(shared, std::move(listing), after), std::move(cursor));
}

std::string_view name_of(TopBy by) noexcept {
  if (by == TopBy::requests) return "requests";
  return by == TopBy::denied ? "denied" : "shadow_denied";
}

void write_top(AdminShared& shared, TopBy by, std::size_t count, JsonWriter& json) {
  const std::shared_ptr<const Policy> policy = shared.reloader.policy();
  std::vector<const LoopClients*> loops;
  for (const LoopMetrics* loop : shared.loops()) loops.push_back(&loop->clients);
  json.begin_array();
  for (const ClientCounters& client : top_clients(loops, by, count)) {
    json.begin_object().key("limit").string(client.limit);
    json.key("id").string(client.secret ? policy->shown_id(policy->find(client.limit), client.id) : client.id);
    json.key("count").number(static_cast<std::int64_t>(client.count));
    json.key("error").number(static_cast<std::int64_t>(client.error)).end_object();
  }
  json.end_array();
}

Outcome top(AdminShared& shared, const Request& request) {
  const std::string_view by = request.parameters.has("by") ? request.parameters["by"] : "requests";
  const std::optional<TopBy> which = read_by(by);
  if (!which) return bad_value("by " + quote(by) + " must be requests, denied or shadow_denied");
  const auto count = request.parameters.number("n", 10, 1, bounds::admin_page_max);
  if (!count) return bad_value(count.error().detail);
  Reply reply;
  JsonWriter json(reply.content);
  json.begin_object().key("by").string(by).key("clients");
  write_top(shared, *which, *count, json);
  json.end_object();
  return reply;
}

}  // namespace weir::admin
