#include "weir/config/access.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/text.h"
#include "weir/config/values.h"
#include "weir/policy/bucket_id.h"

namespace weir::config {
namespace {

class AccessReader {
 public:
  AccessReader(const Document& document, const Limits& limits, int ipv6_prefix, Complaints& complaints)
      : document_(document), limits_(limits), ipv6_prefix_(ipv6_prefix), complaints_(complaints) {}

  void read(AccessEntry::List list, NodeId items) {
    if (!document_.is(items, NodeKind::sequence)) return;
    for (const NodeId item : document_.children(items)) {
      if (document_.node(item).kind == NodeKind::map) read_entry(list, item);
    }
  }

  std::vector<AccessEntry> take() { return std::move(entries_); }

 private:
  std::string text(NodeId item, std::string_view name) const { return std::string(document_.text(item, name)); }

  void read_entry(AccessEntry::List list, NodeId item) {
    AccessEntry entry;
    entry.list = list;
    if (const std::string ip = text(item, "ip"); !ip.empty()) entry.ip = IpPrefix::parse(ip).value();
    entry.apikey = text(item, "apikey");
    entry.limit = text(item, "limit");
    entry.id = text(item, "id");
    entry.reason = text(item, "reason");
    if (const std::string expires = text(item, "expires"); !expires.empty()) {
      entry.expires = parse_instant(expires).value();
    }
    entry.added_by = "configuration";
    if (const Result<void> good = check(entry); !good) {
      // If something was refused, a missing field may not be an error.
      if (!document_.node(item).refused) complaints_.add(item, good.error().detail);
      return;
    }
    AccessEntry canonical = entry;
    if (!entry.limit.empty() && !write_id(item, canonical)) return;
    if (!seen_.insert(selector_of(canonical)).second) {
      const std::string who = entry.ip              ? entry.ip->print()
                              : entry.limit.empty() ? "this apikey"
                                                    : quote(entry.limit + ":" + entry.id);
      return complaints_.add(item, std::string(print(list)) + ": " + who + " is given twice");
    }
    entries_.push_back(std::move(entry));
  }

  // Converts the id to its form in bucket keys. Returns false after a complaint.
  bool write_id(NodeId item, AccessEntry& entry) {
    const auto found = limits_.by_name.find(entry.limit);
    if (found == limits_.by_name.end()) {
      if (!limits_.complete) return false;
      complaints_.add(document_.find(item, "limit"), "unknown limit " + quote(entry.limit));
      return false;
    }
    // These ids are only compared, and equality does not depend on the hash key, so any key will do.
    Result<std::string> id = bucket_id(limits_.made[found->second], entry.id, ipv6_prefix_, "any");
    if (!id) complaints_.add(document_.find(item, "id"), id.error().detail);
    if (id) entry.id = std::move(*id);
    return static_cast<bool>(id);
  }

  const Document& document_;
  const Limits& limits_;
  const int ipv6_prefix_;
  Complaints& complaints_;
  std::vector<AccessEntry> entries_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<AccessEntry> read_access(const Document& document, NodeId root, const Limits& limits, int ipv6_prefix,
                                     Complaints& complaints) {
  AccessReader reader(document, limits, ipv6_prefix, complaints);
  const NodeId access = document.find(root, "access");
  reader.read(AccessEntry::List::allow, document.find(access, "allow"));
  reader.read(AccessEntry::List::deny, document.find(access, "deny"));
  std::vector<AccessEntry> entries = reader.take();
  // Duplicates were already reported; this fails if there are too many entries.
  const auto built = AccessList::build(entries);
  if (!built && complaints.empty()) complaints.add(access, "access: " + built.error().detail);
  return entries;
}

AccessList build_access(std::vector<AccessEntry> entries, std::span<const NamedLimit> limits, int ipv6_prefix,
                        std::string_view hash_key) {
  std::map<std::string_view, const NamedLimit*> by_name;
  for (const NamedLimit& limit : limits) by_name.emplace(limit.name, &limit);
  for (AccessEntry& entry : entries) {
    if (entry.limit.empty()) continue;
    if (auto id = bucket_id(*by_name.at(entry.limit), entry.id, ipv6_prefix, hash_key)) entry.id = std::move(*id);
  }
  return std::move(AccessList::build(std::move(entries)).value());
}

}  // namespace weir::config
