#include "weir/observe/audit.h"

#include "weir/base/text.h"
#include "weir/wire/json.h"

namespace weir {

std::string audit_line(const AuditEntry& entry) {
  return "audit {\"time\":\"" + print_instant(entry.time) + "\"," + audit_fields(entry) + "}";
}

std::string audit_fields(const AuditEntry& entry) {
  std::string object;
  JsonWriter json(object);
  json.begin_object().key("who").string(entry.who);
  json.key("action").string(entry.action).key("target").string(entry.target);
  // JSON values are written unquoted, like numbers.
  json.key("before").number(entry.before.empty() ? std::string_view("null") : entry.before);
  json.key("after").number(entry.after.empty() ? std::string_view("null") : entry.after);
  json.end_object();
  return object.substr(1, object.size() - 2);
}

}  // namespace weir
