#include "weir/config/spellings.h"

#include <algorithm>
#include <initializer_list>

#include "weir/base/text.h"
#include "weir/core/limit.h"

namespace weir::config {
namespace {

void add_value(Document& document, NodeId section, const Node& place, std::string_view key, const std::string& value) {
  Node node = place;
  node.key = document.keep(key);
  node.value = document.keep(value);
  node.next = kNoNode;
  document.append(section, document.add(node));
}

// Replaces `rate` and `addTokenMs` with count and period, so that one of the two can be replaced.
void spell_out(Document& document, NodeId limit) {
  for (const std::string_view word : {"rate", "addTokenMs"}) {
    const NodeId at = document.find(limit, word);
    if (at == kNoNode) continue;
    const std::string text(document.value(at));
    const Result<Rate> rate = parse_rate(word == "rate" ? text : "1/s");
    const Result<Duration> period = word == "rate" ? parse_duration("1s") : parse_duration(text + "ms");
    if (!rate || !period) continue;  // the checker reports it
    const Node place = document.node(at);
    drop(document, limit, word);
    add_value(document, limit, place, "count", std::to_string(rate->count));
    add_value(document, limit, place, "period", print_duration(word == "rate" ? rate->period : *period));
  }
}

}  // namespace

void remove_replaced(Document& document, NodeId limit, std::span<const std::string> keys) {
  const auto says = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view w) { return std::ranges::find(keys, w) != keys.end(); });
  };
  if (says({"rate", "addTokenMs"}) || (says({"count", "average"}) && says({"period"}))) {
    for (const std::string_view word : {"rate", "addTokenMs", "count", "average", "period"})
      drop(document, limit, word);
  } else if (says({"count", "average", "period"})) {
    spell_out(document, limit);
    if (says({"period"})) {
      drop(document, limit, "period");
    } else {
      for (const std::string_view word : {"count", "average"}) drop(document, limit, word);
    }
  }
  if (says({"burst", "capacity"})) {
    for (const std::string_view word : {"burst", "capacity"}) drop(document, limit, word);
  }
}

void drop(Document& document, NodeId section, std::string_view key) {
  NodeId before = kNoNode;
  for (NodeId entry = document.node(section).child; entry != kNoNode; entry = document.node(entry).next) {
    if (document.key(entry) != key) {
      before = entry;
    } else if (before == kNoNode) {
      document.node(section).child = document.node(entry).next;
    } else {
      document.node(before).next = document.node(entry).next;
    }
  }
}

}  // namespace weir::config
