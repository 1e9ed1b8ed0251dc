// Which limits apply, with which numbers. A Policy is made once from a configuration (parse.h) and never changes; a
// reload makes another and swaps the pointer. In: a Query. Out: the charges for a store, every number decided, every
// key written out. Pure: time is an argument, nothing is remembered between two calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/core/charge.h"
#include "weir/core/limit.h"
#include "weir/core/query.h"
#include "weir/identify/client_ip.h"
#include "weir/identify/jwt.h"
#include "weir/identify/request.h"
#include "weir/known/access_list.h"
#include "weir/known/known.h"
#include "weir/policy/block_rule.h"
#include "weir/policy/bucket_id.h"
#include "weir/policy/descriptors.h"
#include "weir/policy/match.h"
#include "weir/policy/named_limit.h"

namespace weir {

// What became of one limit that a query names.
enum class Standing : unsigned char {
  charged,       // it is among the charges
  unlimited,     // nothing to charge: an override, `average: 0`, or a limit without numbers and no override for this id
  blocked,       // an override says `blocked: true`
  off,           // the limit's mode is off
  allow_listed,  // the client, or this id of this limit, is on the allow list: nothing to charge
  deny_listed,   // on the deny list: the whole query is denied
};

std::string_view print(Standing standing) noexcept;

inline constexpr std::size_t kNoCharge = static_cast<std::size_t>(-1);

// One limit that applies: an entry of NamedCharges, at the same index, or a limit of the request's route.
struct Part {
  const NamedLimit* limit = nullptr;  // the policy's; lives as long as it does
  std::string_view id;                // canonical, or its keyed hash: what may be stored, logged and shown
  Standing standing = Standing::charged;
  Enforcement mode = Enforcement::enforce;  // the limit's or the route's, whichever is laxer
  Source source = Source::limit;            // where the rate's numbers, or the standing, came from
  std::size_t charge = kNoCharge;           // index into Resolved::charges()
  bool unknown_tier = false;                // the limit does not define the client's tier; its own numbers apply
};

// A query's charges and the text that their keys point to. Reusable: after a few queries it allocates nothing. Filled
// by Policy::resolve() only.
class Resolved {
 public:
  Resolved();
  Resolved(const Resolved&) = delete;  // charges point into the text
  Resolved& operator=(const Resolved&) = delete;

  // What to charge, in the order asked. Empty when nothing limits the query, or when it is blocked() and charged
  // together. With Order::in_order these are the charges before the blocked limit: charge them, then deny.
  std::span<const Charge> charges() const noexcept { return {charges_.data(), charges_size_}; }

  // One per entry of NamedCharges; of a request one per limit that applies to it.
  std::span<const Part> parts() const noexcept { return {parts_.data(), parts_size_}; }

  // The first part whose limit enforces and whose id is blocked: the query is denied, no wait helps. Null otherwise.
  const Part* blocked() const noexcept { return blocked_ == kNoCharge ? nullptr : &parts_[blocked_]; }

  // A list denies the query, whatever its limits say.
  bool deny_listed() const noexcept { return deny_listed_; }
  // The part whose client, or id, the list denies. Null: no list denies, or one denies the client of a request, who is
  // then not asked for any limit; denied_client() tells who.
  const Part* denied() const noexcept { return denied_ == kNoCharge ? nullptr : &parts_[denied_]; }
  // When the last of the entries ends that deny it; nothing: never. REQUIRES: deny_listed().
  std::optional<Wall> denied_until() const noexcept { return denied_until_; }
  // {"ip", "203.0.113.9"} or {"apikey", "…"}: by what a list knows the client of a request; empty otherwise.
  const Attribute& denied_client() const noexcept { return denied_client_; }
  // The client is on the allow list: the query passes, nothing is charged.
  bool allow_listed() const noexcept { return allow_listed_; }

  // How to charge: as the route says, otherwise as the query does.
  Order order() const noexcept { return order_; }

  // Charged in order, a cost that exceeds a burst behind the first would be found only after others were charged. Look
  // (Mode::peek) instead of spending: the answer is the same, and nothing is taken.
  bool impossible() const noexcept { return impossible_; }

  // The route a request took; null: none, or limits were named.
  const Route* route() const noexcept { return route_; }

  // Of a query of descriptors: one for each, and other limits that count their entries.
  std::span<const DescriptorAnswer> descriptors() const noexcept { return {descriptors_.data(), descriptors_size_}; }
  std::span<const DescriptorJoin> joins() const noexcept { return {joins_.data(), joins_.size()}; }

  // Who asks, of a request.
  const std::optional<IpAddress>& client_ip() const noexcept { return request_.client(); }
  std::string_view apikey() const noexcept { return request_.apikey(); }

 private:
  friend class Policy;

  void clear();
  // Room in the text for so many more keys, so that writing them moves none.
  void make_room(std::size_t keys);
  std::size_t add(const Charge& charge);  // its index, or that of a charge of the same buckets; kNoCharge when full

  // As long as the longest query so far: most have one or two, and many queries may be unanswered at once.
  std::vector<Charge> charges_;
  std::vector<Part> parts_;
  std::size_t charges_size_ = 0;
  std::size_t parts_size_ = 0;
  std::size_t blocked_ = kNoCharge;
  std::size_t denied_ = kNoCharge;
  bool deny_listed_ = false;
  std::optional<Wall> denied_until_;
  Attribute denied_client_;
  bool allow_listed_ = false;
  Order order_ = Order::together;
  bool impossible_ = false;
  const Route* route_ = nullptr;
  Request request_;
  std::vector<DescriptorAnswer> descriptors_;  // grows like parts_
  std::size_t descriptors_size_ = 0;
  std::vector<DescriptorJoin> joins_;
  std::vector<const DescriptorRule*> rules_;  // of descriptors_, while they are resolved
  std::vector<std::string> ids_;
  std::vector<Attribute> entries_;
  std::string text_;  // the keys, one after another
};

class Policy {
 public:
  // Everything but the checks: parse.h makes one of these from files, and refuses what does not fit together.
  // REQUIRES: names, numbers and overrides were checked.
  struct Parts {
    std::vector<NamedLimit> limits;  // in the order written
    std::vector<Route> routes;       // in the order written; empty: every limit with a key applies to every request
    TrustedProxies trusted;          // whose X-Forwarded-For is believed
    std::string hash_key;            // of `hashed`; empty: none is known
    int ipv6_prefix = 64;
    FailurePolicy failure_policy = FailurePolicy::pass_through;
    int failure_code = 0;                      // of limits that have none; 0: the protocol's own
    DescriptorTable descriptors;               // rules of descriptors, over `limits`
    HeaderFamilies headers;                    // of HTTP answers
    Duration window_max = bounds::window_max;  // from empty to full, that the store can hold
    std::string overrides_file;                // where overrides were written, for people
    AccessList access;                         // the configuration's; ids as in bucket keys
    BlockRule block;
    struct Tokens {
      std::shared_ptr<const JwtVerifier> verifier;  // null: no limit is keyed by a claim
      std::string header;                           // where the token is; empty: the bearer token
      std::string cookie;
    } jwt;
  };
  explicit Policy(Parts parts);

  // The charges of a query that names its limits, or of a request (attributes, see identify/request.h), whose limits
  // its route names. First the deny list is asked, then the allow list; then for each limit, first match wins: a live
  // adjustment, an override, the client's tier, the schedule, the limit's own numbers. A reset covers the buckets of
  // all tiers. Errors: unknown (no such limit), invalid (an id
  // that breaks its format, a negative cost, a key that a limit insists on and the request lacks), too_large (more than
  // bounds::charges_max limits), internal (a hashed limit and no key). The same bucket twice is charged once, with the
  // summed cost. `published`: when this policy came in force; not known: it may have been just now. REQUIRES: the
  // query's subject is NamedCharges, RequestFacts or Descriptors.
  Result<void> resolve(const Query& query, const Known& known, Now now, Resolved& out,
                       Time published = Time::max()) const;

  // What stands for an id of that limit in bucket keys, adjustments and access entries. Errors as of resolve().
  Result<std::string> bucket_id(std::string_view limit, std::string_view id) const;
  // Tells hash keys apart without revealing them, in bounds::hash_mark_bytes characters; empty where ids are not
  // hashed.
  std::string_view hash_mark(const NamedLimit& limit) const noexcept;
  // Whether an adjustment or access entry for that id matches nobody, because the id was hashed under another key, or
  // only the id or only the limit is hashed.
  bool is_orphaned(std::string_view limit, std::string_view id, std::string_view mark) const noexcept;
  // The numbers in force for that id, which is as bucket_id() gives it, and where they come from. No numbers: nothing
  // limits it, or only a quota does. With a tier, those of its bucket.
  struct InForce {
    std::optional<Limit> numbers;
    Source source = Source::limit;
    Standing standing = Standing::charged;
    Wall changed = Wall::min();  // when the schedule, or the end of an adjustment, last changed the numbers
    std::string_view tier = {};  // whose bucket counts; empty: the limit's own
  };
  InForce in_force(const NamedLimit& limit, std::string_view bucket_id, const Known& known, Wall wall,
                   std::string_view tier = {}) const;
  // The live deny entry about that id: of the configuration, of an operator, or an automatic block. Null: none; of
  // several the last to end. Valid as long as the policy and `known`.
  const AccessEntry* denied_by(const NamedLimit& limit, std::string_view bucket_id, const Known& known,
                               Wall wall) const;

  // The key of `hashed` and of handles.
  std::string_view hash_key() const noexcept { return parts_.hash_key; }
  // What an entry about this API key stores when it is made by handle (identify/handle.h).
  std::string full_handle(std::string_view apikey) const;
  // An API key, and an id, as operators see it: both in clear or as a full handle. Null: the limit is gone, and its ids
  // may be API keys.
  std::string shown_apikey(std::string_view apikey) const;
  std::string shown_id(const NamedLimit* limit, std::string_view id) const;
  // The adjustment of that id, made for the id itself or by handle, ended or not. Null: none. Valid as long as `known`.
  const Adjustment* adjustment_of(const NamedLimit& limit, std::string_view bucket_id, const Known& known) const;

  std::span<const NamedLimit> limits() const noexcept { return parts_.limits; }
  const NamedLimit* find(std::string_view name) const noexcept;  // null if not found
  // "unknown limit "ordrs"; did you mean "orders"?", for a name that find() does not know.
  Error unknown_limit(std::string_view name) const;
  std::span<const Route> routes() const noexcept { return routes_.all(); }
  // The route that resolve() takes for this request; null: none.
  const Route* route_of(const Request& request) const noexcept { return routes_.find(request); }
  const TrustedProxies& trusted() const noexcept { return parts_.trusted; }
  std::size_t override_count() const noexcept { return override_count_; }
  const std::string& overrides_file() const noexcept { return parts_.overrides_file; }
  FailurePolicy failure_policy() const noexcept { return parts_.failure_policy; }
  int failure_code() const noexcept { return parts_.failure_code; }
  const HeaderFamilies& headers() const noexcept { return parts_.headers; }
  Duration window_max() const noexcept { return parts_.window_max; }
  int ipv6_prefix() const noexcept { return parts_.ipv6_prefix; }
  const AccessList& access() const noexcept { return parts_.access; }
  const BlockRule& block() const noexcept { return parts_.block; }
  // Some rule blocks clients that are denied often: `access.block` or `block` of a limit.
  bool blocks() const noexcept { return blocks_; }

  // Some limit is `hashed` and there is no key to hash with: give Options::made_hash_key (parse.h).
  bool lacks_hash_key() const noexcept;

 private:
  // What is charged for one id of one limit: numbers, a quota, both or neither.
  struct Numbers {
    std::optional<Limit> bucket;
    const QuotaText* quota = nullptr;
    const Tier* tier = nullptr;           // whose bucket is charged; null: the limit's own
    Source source = Source::limit;        // of the bucket, or of the standing
    Source quota_source = Source::limit;  // of the quota
    Standing standing = Standing::charged;
    Wall changed = Wall::min();  // as InForce::changed
  };
  struct Asking;  // a query on its way through resolve()
  struct Wanted;  // one limit of it, who is counted, and how
  static Numbers choose(const NamedLimit& limit, const Override* found, const Adjustment* adjustment, const Tier* tier,
                        Wall wall);
  // resolve.cc
  Result<void> resolve_named(const NamedCharges& named_charges, const Asking& asking, Resolved& out) const;
  Result<void> resolve_request(const RequestFacts& facts, const Asking& asking, Resolved& out) const;
  Result<void> resolve_limit(const NamedLimit& limit, const RequestFacts& facts, Count cost, const Asking& asking,
                             Resolved& out) const;
  // resolve_descriptors.cc
  Result<void> resolve_descriptors(const Descriptors& descriptors, const Asking& asking, Resolved& out) const;
  static void match_descriptors(const Descriptors& descriptors, const DescriptorTable::Domain* domain, Resolved& out);
  Result<void> add_descriptor(const Descriptor& descriptor, const DescriptorTable::Domain& domain, std::size_t index,
                              const Asking& asking, Resolved& out) const;
  Result<void> charge_own(const Descriptor& descriptor, const DescriptorTable::Domain& domain, std::size_t index,
                          const Asking& asking, Resolved& out) const;
  Result<void> join_limits(const Descriptors& descriptors, const Asking& asking, Resolved& out) const;
  bool has_handles(const Known& known) const noexcept;
  bool ask_lists(const Asking& asking, Resolved& out) const;
  Standing ask_lists(const Identity& identity, const Part& part, const Asking& asking, Resolved& out) const;
  Result<void> add_part(const Wanted& wanted, const Asking& asking, Resolved& out) const;
  Result<std::string_view> write_key(const NamedLimit& limit, const Identity& identity, const Route* route,
                                     std::string& text) const;
  std::string tier_of(const NamedLimit& limit, std::string_view from, const Request& request) const;
  Result<void> charge(const Numbers& numbers, std::string_view key, const Wanted& wanted, const Asking& asking,
                      Part& part, Resolved& out) const;
  Result<void> forget_tiers(const NamedLimit& limit, std::string_view key, Wall wall, Resolved& out) const;

  Parts parts_;
  RouteTable routes_;
  std::string hash_mark_;
  std::vector<std::uint32_t> keyed_;   // limits that have a key
  std::vector<std::uint32_t> joined_;  // limits whose key has an entry of descriptors
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::size_t override_count_ = 0;
  bool blocks_ = false;
};

// The latest instant at which numbers that the calendar changed at `changed` may have changed at all (Charge::since):
// then, when the policy was published or when the adjustments were.
Time changed_since(Wall changed, Time published, const Known& known, Now now) noexcept;

}  // namespace weir
