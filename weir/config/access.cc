#include "weir/config/access.h"

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
  AccessReader(const Document& document, const Limits& limits, const IdOptions& ids, Complaints& complaints)
      : document_(document), limits_(limits), ids_(ids), complaints_(complaints) {}

  void read(AccessEntry::List list, NodeId items) {
    if (items == kNoNode || document_.node(items).kind != NodeKind::sequence) return;
    for (const NodeId item : document_.children(items)) {
      if (document_.node(item).kind == NodeKind::map) read_entry(list, item);
    }
  }

  AccessList build(NodeId access) {
    auto built = AccessList::build(std::move(entries_));
    // What is given twice has its complaint already; this is for too many.
    if (!built && complaints_.empty()) complaints_.add(document_.mark(access), "access: " + built.error().detail);
    return built ? std::move(*built) : AccessList();
  }

 private:
  std::string text(NodeId item, std::string_view name) const {
    const NodeId id = document_.find(item, name);
    return std::string(id == kNoNode || document_.node(id).refused ? std::string_view{} : document_.value(id));
  }

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
      // What is missing may be what was refused.
      if (!document_.node(item).refused) complaints_.add(document_.mark(item), good.error().detail);
      return;
    }
    if (!entry.limit.empty() && !write_id(item, entry)) return;
    if (!seen_.insert(selector_of(entry)).second) {
      const std::string who = entry.ip              ? entry.ip->print()
                              : entry.limit.empty() ? "this apikey"
                                                    : quote(entry.limit + ":" + text(item, "id"));
      return complaints_.add(document_.mark(item), std::string(print(list)) + ": " + who + " is given twice");
    }
    entries_.push_back(std::move(entry));
  }

  // The id as it stands in bucket keys. False: it has its complaint.
  bool write_id(NodeId item, AccessEntry& entry) {
    const auto found = limits_.by_name.find(entry.limit);
    if (found == limits_.by_name.end()) {
      if (!limits_.complete) return false;
      complaints_.add(document_.mark(document_.find(item, "limit")), "unknown limit " + quote(entry.limit));
      return false;
    }
    const NamedLimit& limit = limits_.made[found->second];
    Result<std::string> id = bucket_id(limit, entry.id, ids_.ipv6_prefix, ids_.hash_key);
    if (id) {
      entry.id = std::move(*id);
    } else if (id.error().fault != Fault::internal) {
      complaints_.add(document_.mark(document_.find(item, "id")), id.error().detail);
    }
    return id || id.error().fault == Fault::internal;
  }

  const Document& document_;
  const Limits& limits_;
  const IdOptions& ids_;
  Complaints& complaints_;
  std::vector<AccessEntry> entries_;
  std::set<std::string> seen_;
};

}  // namespace

AccessList read_access(const Document& document, NodeId root, const Limits& limits, const IdOptions& ids,
                       Complaints& complaints) {
  AccessReader reader(document, limits, ids, complaints);
  const NodeId access = document.find(root, "access");
  reader.read(AccessEntry::List::allow, document.find(access, "allow"));
  reader.read(AccessEntry::List::deny, document.find(access, "deny"));
  return reader.build(access);
}

}  // namespace weir::config
