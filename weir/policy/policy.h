// Which limits apply to a query, and with which numbers. In: a Query. Out: the charges for a store, with all numbers
// chosen and all keys written. Pure: time is an argument, and no state is kept between calls. A Policy is built once
// from a configuration (config/parse.h) and is immutable, so any thread may read it; a reload builds another and swaps
// the pointer.
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
#include "weir/policy/limits_service.h"
#include "weir/policy/match.h"
#include "weir/policy/named_limit.h"

namespace weir {

// The outcome for one limit of a query.
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
  const NamedLimit* limit = nullptr;  // owned by the policy
  std::string_view id;                // canonical, or its keyed hash: what may be stored, logged and shown
  Standing standing = Standing::charged;
  Enforcement mode = Enforcement::enforce;        // the limit's or the route's, whichever is laxer
  Source source = Source::limit;                  // where the rate's numbers, or the standing, came from
  std::size_t charge = kNoCharge;                 // index into Resolved::charges()
  std::string_view tier;                          // the client's, if the limit defines it; empty: none
  bool unknown_tier = false;                      // the limit does not define the client's tier; its own numbers apply
  std::shared_ptr<const ServiceAnswer> answer{};  // of the limit's service; null: none, or none is known
};

// An id whose limit's service must be asked before the query can be decided.
struct Lookup {
  const NamedLimit* limit = nullptr;
  std::string_view id;  // as in Part
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

  // One per entry of NamedCharges; for a request, one per limit that applies to it.
  std::span<const Part> parts() const noexcept { return {parts_.data(), parts_size_}; }

  // The first part whose limit enforces and whose id is blocked: the query is denied, and waiting does not help. Null
  // otherwise.
  const Part* blocked() const noexcept { return blocked_ == kNoCharge ? nullptr : &parts_[blocked_]; }

  // True if an access list denies the query, whatever its limits decide.
  bool deny_listed() const noexcept { return deny_listed_; }
  // The part whose client or id the list denies. Null if no list denies, or if one denies the client of a request: then
  // no limits are checked, and denied_client() names the client.
  const Part* denied() const noexcept { return denied_ == kNoCharge ? nullptr : &parts_[denied_]; }
  // When the last of the denying entries expires; nullopt: never. REQUIRES: deny_listed().
  std::optional<Wall> denied_until() const noexcept { return denied_until_; }
  // What the list matched in a request: {"ip", "203.0.113.9"} or {"apikey", "…"}; empty otherwise.
  const Attribute& denied_client() const noexcept { return denied_client_; }
  // The client is on the allow list: the query is allowed, and nothing is charged.
  bool allow_listed() const noexcept { return allow_listed_; }

  // The route's order; without a route, the query's.
  Order order() const noexcept { return order_; }

  // True if the charges are in order and some cost exceeds its burst, so it can never pass. Spending would charge the
  // limits before it. Peek (Mode::peek) instead: the answer is the same, and nothing is charged.
  bool impossible() const noexcept { return impossible_; }

  // The route of a request; null: none, or the query named its limits.
  const Route* route() const noexcept { return route_; }

  // The lookups that services must answer first; until then the charges are incomplete. Empty: they are complete.
  std::span<const Lookup> lookups() const noexcept { return lookups_; }
  // True if a limit that requires a backend_url has no id in this query.
  bool lacks_backend() const noexcept { return lacks_backend_; }

  // For a query of descriptors: one answer per descriptor, and other limits that count their entries.
  std::span<const DescriptorAnswer> descriptors() const noexcept { return {descriptors_.data(), descriptors_size_}; }
  std::span<const DescriptorJoin> joins() const noexcept { return {joins_.data(), joins_.size()}; }

  // The client of a request.
  const std::optional<IpAddress>& client_ip() const noexcept { return request_.client(); }
  std::string_view apikey() const noexcept { return request_.apikey(); }

 private:
  friend class Policy;

  void clear();
  // Reserves room for this many more keys, so that writing them does not move the text.
  void make_room(std::size_t keys);
  std::size_t add(const Charge& charge);  // its index, or that of a charge of the same buckets; kNoCharge when full

  // Sized for the longest query so far, not the maximum: most have one or two charges, and many queries may be pending.
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
  std::vector<Lookup> lookups_;
  bool lacks_backend_ = false;
  Request request_;
  std::vector<DescriptorAnswer> descriptors_;  // grows like parts_
  std::size_t descriptors_size_ = 0;
  std::vector<DescriptorJoin> joins_;
  std::vector<const DescriptorRule*> rules_;  // of descriptors_, while they are resolved
  std::vector<std::string> ids_;
  std::vector<Attribute> entries_;
  std::string text_;  // all keys, one after another
};

class Policy {
 public:
  // Everything a policy consists of. parse.h makes it from files and rejects inconsistent values. REQUIRES: names,
  // numbers and overrides were checked.
  struct Parts {
    std::vector<NamedLimit> limits;  // in the order written
    std::vector<Route> routes;       // in the order written; empty: every limit with a key applies to every request
    TrustedProxies trusted;          // their X-Forwarded-For is trusted
    std::string hash_key;            // for `hashed`; empty: none
    int ipv6_prefix = 64;
    FailurePolicy failure_policy = FailurePolicy::pass_through;
    int failure_code = 0;                      // for limits without one; 0: the protocol's default
    DescriptorTable descriptors;               // rules that point into `limits`
    HeaderFamilies headers;                    // for HTTP responses
    Duration window_max = bounds::window_max;  // the longest window, from empty to full, that the store can hold
    std::string overrides_file;                // where overrides were written, for messages
    AccessList access;                         // from the configuration; ids as in bucket keys
    BlockRule block;
    struct Tokens {
      std::shared_ptr<const JwtVerifier> verifier;  // null: no limit is keyed by a claim
      std::string header;                           // where the token is; empty: the bearer token
      std::string cookie;
    } jwt;
  };
  explicit Policy(Parts parts);

  // Resolves the charges of a query that names its limits, or of a request (attributes, see identify/request.h), whose
  // route names them. Checks the deny list, then the allow list. Then, for each limit, the first of these gives the
  // numbers: a live adjustment, its service's answer, an override, the client's tier, the schedule, the limit itself. A
  // reset covers the buckets of all tiers. Errors: unknown (no such limit), invalid (an id in the wrong format, a
  // negative cost, a missing key that a limit requires), too_large (more than bounds::charges_max limits), internal (a
  // hashed limit and no key). A bucket that occurs twice is charged once, with the summed cost.
  //
  // `published`: when this policy came into force; the default means unknown, possibly just now. `answers`: the known
  // answers of services; Resolved::lookups() names those that must be asked first. Null: services are not asked, and
  // their limits use their own numbers. REQUIRES: the query's subject is NamedCharges, RequestFacts or Descriptors.
  Result<void> resolve(const Query& query, const Known& known, Now now, Resolved& out, Time published = Time::max(),
                       const ServiceAnswers* answers = nullptr) const;

  // Converts an id of that limit to its form in bucket keys, adjustments and access entries. Errors as in resolve().
  Result<std::string> bucket_id(std::string_view limit, std::string_view id) const;
  // Identifies the hash key without revealing it, in bounds::hash_mark_bytes characters; empty if ids are not hashed.
  std::string_view hash_mark(const NamedLimit& limit) const noexcept;
  // True if an adjustment or access entry for that id can match no client, because the id was hashed with another key,
  // or only one of id and limit is hashed.
  bool is_orphaned(std::string_view limit, std::string_view id, std::string_view mark) const noexcept;
  // The numbers in force for an id, given as bucket_id() returns it, and where they come from. No numbers: unlimited,
  // or only a quota applies. With a tier, the numbers of that tier's bucket.
  struct InForce {
    std::optional<Limit> numbers;
    Source source = Source::limit;
    Standing standing = Standing::charged;
    Wall changed = Wall::min();  // when the schedule, or the end of an adjustment, last changed the numbers
    std::string_view tier = {};  // of the bucket that is charged; empty: the limit's own
    Time since{};                // when the service's answer came into force
  };
  // `answer`: of the limit's service, if one is in force.
  InForce in_force(const NamedLimit& limit, std::string_view bucket_id, const Known& known, Wall wall,
                   std::string_view tier = {}, const ServiceAnswer* answer = nullptr) const;
  // Returns the live deny entry for that id: from the configuration, from an operator, or an automatic block. Null if
  // there is none; of several, the one that expires last. Valid as long as the policy and `known`.
  const AccessEntry* denied_by(const NamedLimit& limit, std::string_view bucket_id, const Known& known,
                               Wall wall) const;

  // The key for `hashed` and for handles.
  std::string_view hash_key() const noexcept { return parts_.hash_key; }
  // Returns what an entry made by handle (identify/handle.h) stores for this API key.
  std::string full_handle(std::string_view apikey) const;
  // Return an API key or an id as shown to operators: in clear text or as a full handle. A null limit means that it no
  // longer exists, so its ids may be API keys.
  std::string shown_apikey(std::string_view apikey) const;
  std::string shown_id(const NamedLimit* limit, std::string_view id) const;
  // Returns the adjustment for that id, made for the id itself or by handle, expired or not; null if there is none.
  // Valid as long as `known`.
  const Adjustment* adjustment_of(const NamedLimit& limit, std::string_view bucket_id, const Known& known) const;

  std::span<const NamedLimit> limits() const noexcept { return parts_.limits; }
  const NamedLimit* find(std::string_view name) const noexcept;  // null if not found
  // Returns "unknown limit "ordrs"; did you mean "orders"?" for a name that find() does not know.
  Error unknown_limit(std::string_view name) const;
  std::span<const Route> routes() const noexcept { return routes_.all(); }
  // Returns the route that resolve() uses for this request, or null.
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
  // True if some rule blocks clients that are denied often: `access.block` or `block` of a limit.
  bool blocks() const noexcept { return blocks_; }

  // True if some limit has a service.
  bool has_services() const noexcept { return has_services_; }

  // True if some limit is `hashed` and there is no key to hash with. Set Options::made_hash_key (parse.h).
  bool lacks_hash_key() const noexcept;

 private:
  // What is charged for one id of one limit: numbers, a quota, both or neither.
  struct Numbers {
    std::optional<Limit> bucket;
    const QuotaText* quota = nullptr;
    const Tier* tier = nullptr;           // the tier whose bucket is charged; null: the limit's own bucket
    Source source = Source::limit;        // of the bucket, or of the standing
    Source quota_source = Source::limit;  // of the quota
    Standing standing = Standing::charged;
    Wall changed = Wall::min();  // as InForce::changed
  };
  struct Asking;  // the state of a query during resolve()
  struct Wanted;  // one limit of it: the id to count, and how
  static Numbers choose(const NamedLimit& limit, const Override* found, const ServiceAnswer* answer,
                        const Adjustment* adjustment, const Tier* tier, Wall wall);
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
  void find_answer(const Asking& asking, Part& part, Resolved& out) const;
  Result<std::string_view> use_tenant(const Wanted& wanted, const Asking& asking, Part& part,
                                      const Adjustment*& adjustment, Resolved& out) const;
  std::string tier_of(const NamedLimit& limit, std::string_view from, const Request& request) const;
  Result<void> charge(const Numbers& numbers, std::string_view key, const Wanted& wanted, const Asking& asking,
                      Part& part, Resolved& out) const;
  Result<void> forget_tiers(const NamedLimit& limit, std::string_view key, Wall wall, Resolved& out) const;

  Parts parts_;
  RouteTable routes_;
  std::string hash_mark_;
  std::vector<std::uint32_t> keyed_;   // limits that have a key
  std::vector<std::uint32_t> joined_;  // limits whose key uses an entry of descriptors
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::size_t override_count_ = 0;
  bool blocks_ = false;
  bool has_services_ = false;
};

// Returns the latest instant at which the numbers may have changed (Charge::since): at `changed` by the calendar, when
// the policy was published, or when the adjustments were.
Time changed_since(Wall changed, Time published, const Known& known, Now now) noexcept;

}  // namespace weir
