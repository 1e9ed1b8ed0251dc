#include <optional>

#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/environment.h"
#include "weir/config/fields.h"

namespace weir::config {

using namespace alone;

namespace {

// Builds a tree by hand.
class TreeSketch {
 public:
  TreeSketch(const Environment& environment, Document& document, Complaints& complaints)
      : environment_(environment),
        document_(document),
        complaints_(complaints),
        here_(document.add_file(std::string(kNoVariable))) {}

  NodeId map(NodeId parent, std::string_view key) { return document_.add_entry(parent, here_, NodeKind::map, key); }

  // Adds an entry whose position is the variable, or none if the variable is not set.
  void scalar(NodeId parent, std::string_view key, std::string_view value, std::string_view variable) {
    const FileId file = environment_.contains(variable) ? document_.add_file(std::string(variable)) : here_;
    document_.add_entry(parent, file, NodeKind::scalar, key, value);
  }

  std::string value(std::string_view name, std::string_view fallback) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string(fallback) : found->second;
  }

  bool flag(std::string_view name, bool fallback) {
    const std::string text = value(name, fallback ? "true" : "false");
    if (text == "true" || text == "false") return text == "true";
    complain(name, "must be true or false, not " + quote(text));
    return fallback;
  }

  // Returns a variable's value, checked against a field of the table. Reports a bad one and returns the default. Checks
  // here and not in the tree, because a bad variable is an error even if its value is not used.
  std::string checked(std::string_view name, const Field& field, std::string_view fallback) {
    const std::string text = value(name, fallback);
    std::optional<std::string> sentence = check_value(field, text, false);
    if (!sentence) return text;
    complain(name, std::move(*sentence));
    return std::string(fallback);
  }

  // A number of requests per second, as a rate.
  std::string per_second(std::string_view name, std::string_view fallback) {
    const std::string text = value(name, fallback);
    if (parse_rate(text + "/s")) return text + "/s";
    complain(name, "must be a number of requests per second above 0, such as 100 or 0.5, not " + quote(text));
    return std::string(fallback) + "/s";
  }

 private:
  void complain(std::string_view name, std::string sentence) {
    complaints_.add({document_.add_file(std::string(name)), 0, 0}, std::move(sentence));
  }

  const Environment& environment_;
  Document& document_;
  Complaints& complaints_;
  FileId here_;
};

}  // namespace

NodeId environment_alone(const Environment& environment, Document& document, Complaints& complaints) {
  TreeSketch sketch(environment, document, complaints);
  const bool enabled = sketch.flag(kEnabled, true);
  const bool by_ip = sketch.flag(kByIp, true);
  const bool by_apikey = sketch.flag(kByApikey, false);
  if (enabled && !by_ip && !by_apikey) {
    complaints.add({document.add_file(std::string(kEnabled)), 0, 0},
                   "is true, but " + std::string(kByIp) + " and " + std::string(kByApikey) + " are both false");
  }
  const std::string rate = sketch.per_second(kPerSecond, "100.0");
  const std::string burst = sketch.checked(kBurst, *find_field(limit_fields(), "burst"), "20");
  const Field& memory_field = *find_field(file_fields(), "memory");
  const std::string cleanup = sketch.checked(kCleanup, *find_field(memory_field.fields, "cleanup"), "5m");
  const NodeId root = sketch.map(kNoNode, "");
  const NodeId limits = sketch.map(root, "limits");
  struct Strategy {
    std::string_view name;
    std::string_view key;
    std::string_view variable;
    bool on;
  };
  for (const Strategy& strategy :
       {Strategy{"per-ip", "ip", kByIp, by_ip}, Strategy{"per-apikey", "apikey", kByApikey, by_apikey}}) {
    if (!strategy.on) continue;
    const NodeId limit = sketch.map(limits, strategy.name);
    sketch.scalar(limit, "key", strategy.key, strategy.variable);
    sketch.scalar(limit, "rate", rate, kPerSecond);
    sketch.scalar(limit, "burst", burst, kBurst);
    // A limit that is off still exists: callers that name it are let through.
    if (!enabled) sketch.scalar(limit, "mode", "off", kEnabled);
  }
  const NodeId memory = sketch.map(root, "memory");
  sketch.scalar(memory, "cleanup", cleanup, kCleanup);
  return root;
}

}  // namespace weir::config
