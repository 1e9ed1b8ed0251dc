// A record of what operators changed: who changed what, for which client, and the values before and after. One line of
// JSON after the word "audit", for the log. The caller shortens secrets.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/time.h"

namespace weir {

struct AuditEntry {
  Wall time{};
  std::string_view who;     // the caller's address, or "local"
  std::string_view action;  // "adjust", "reset", "reload", …
  std::string_view target;  // "per-ip:203.0.113.9", "deny ip 203.0.113.0/24"; empty: the whole server
  std::string_view before;  // JSON; empty: none
  std::string_view after;   // the same
};

std::string audit_line(const AuditEntry& entry);
// The same for JSON logs: who, action, target, before and after as members of an object, without its braces.
std::string audit_fields(const AuditEntry& entry);

}  // namespace weir
