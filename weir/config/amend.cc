#include "weir/config/amend.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/fields.h"
#include "weir/config/spellings.h"
#include "weir/config/yaml.h"

namespace weir::config {
namespace {

// The fields of a policy. A replacement removes only these, so that a request that replaces the limits does not reset
// failure_policy by omitting it.
constexpr std::array<std::string_view, 5> kPolicyFields = {"limits", "names", "overrides", "routes", "access"};

class Amender {
 public:
  Amender(Document& document, NodeId root, Complaints& complaints)
      : document_(document), root_(root), complaints_(complaints) {}

  // Replaces the policy's fields with the body's. All other fields are kept unless the body sets them.
  void replace(NodeId body) {
    for (const std::string_view name : kPolicyFields) drop(document_, root_, name);
    for (const NodeId entry : children(body)) {
      const Field* const field = find_field(file_fields(), document_.key(entry));
      if (field == nullptr || field->shape != Shape::map_or_path || document_.node(entry).kind != NodeKind::scalar) {
        continue;
      }
      complaints_.add(entry, std::string(document_.key(entry)) + " must be a map here, not a file");
      document_.node(entry).refused = true;
    }
    take_over(root_, body);
  }

  // Changes the numbers of existing limits.
  void merge(NodeId body) {
    for (const NodeId section : children(body)) {
      if (document_.key(section) == "limits" && document_.node(section).kind == NodeKind::map) {
        for (const NodeId entry : children(section)) merge_limit(entry);
        continue;
      }
      complaints_.add_at_key(section, quote(document_.key(section)) +
                                          " cannot be merged: only a map of limits can; a whole policy "
                                          "is sent as application/yaml");
    }
  }

 private:
  void merge_limit(NodeId entry) {
    const std::string name(document_.key(entry));
    const NodeId limits = document_.find(root_, "limits");
    const NodeId names = document_.find(root_, "names");
    const NodeId limit = document_.find(limits, name);
    if (limit == kNoNode && limits != kNoNode && document_.find(names, name) != kNoNode) {
      document_.node(entry).next = kNoNode;
      return document_.append(limits, entry);
    }
    if (limit == kNoNode) return complain_unknown(entry, limits, names);
    if (document_.node(entry).kind != NodeKind::map || document_.node(limit).kind != NodeKind::map) {
      complaints_.add(entry, "limit " + quote(name) + " must be a map of numbers");
      return;
    }
    std::vector<std::string> words;
    for (const NodeId number : children(entry)) words.emplace_back(document_.key(number));
    remove_replaced(document_, limit, words);
    take_over(limit, entry);
  }

  void complain_unknown(NodeId entry, NodeId limits, NodeId names) {
    std::vector<std::string_view> known;
    for (const NodeId section : {limits, names}) {
      for (const NodeId limit : document_.children(section)) known.push_back(document_.key(limit));
    }
    complaints_.add_at_key(
        entry, "there is no limit " + quote(document_.key(entry)) + did_you_mean(known, document_.key(entry)));
  }

  // Moves the entries of `body` to `section`, replacing those with the same keys. Keeps duplicate keys of the body, so
  // that the check reports them.
  void take_over(NodeId section, NodeId body) {
    const std::vector<NodeId> entries = children(body);
    for (const NodeId entry : entries) drop(document_, section, std::string(document_.key(entry)));
    for (const NodeId entry : entries) {
      document_.node(entry).next = kNoNode;
      document_.append(section, entry);
    }
  }

  // A copy, because callers move the entries while iterating.
  std::vector<NodeId> children(NodeId id) const {
    std::vector<NodeId> all;
    for (const NodeId child : document_.children(id)) all.push_back(child);
    return all;
  }

  Document& document_;
  NodeId root_;
  Complaints& complaints_;
};

// Callers of the admin API must not make the server read its files and variables. The check skips what is refused here.
void refuse_pointers(Document& document, NodeId section, std::span<const Field> fields, Complaints& complaints) {
  const auto look = [&](NodeId value, const Field& field) {
    const NodeKind kind = document.node(value).kind;
    if (field.type == Type::section && kind == NodeKind::map) {
      return refuse_pointers(document, value, field.fields, complaints);
    }
    const std::string_view text = document.value(value);
    if (field.type != Type::secret || (!text.starts_with("env:") && !text.starts_with("file:"))) return;
    complaints.add(value,
                   std::string(field.name) + ": env: and file: are refused over the admin API; send the secret itself");
    document.node(value).refused = true;
    document.node(section).refused = true;
  };
  for (const Field& field : fields) {
    if (field.type != Type::section && field.type != Type::secret) continue;
    const NodeId id = document.find(section, field.name);
    if (id == kNoNode) continue;
    const bool map = field.shape == Shape::map || field.shape == Shape::map_or_path;
    if (!map && document.node(id).kind != NodeKind::sequence) {
      look(id, field);
      continue;
    }
    for (const NodeId item : document.children(id)) look(item, field);
  }
}

}  // namespace

void amend(std::span<const Amendment> amendments, Document& document, NodeId root, Complaints& complaints) {
  for (const Amendment& amendment : amendments) {
    const FileId file = document.add_file(std::string(kAmendmentName));
    const NodeId body = read_yaml(amendment.text, file, document, complaints);
    if (body == kNoNode) continue;
    if (document.node(body).kind != NodeKind::map) {
      complaints.add(body, "a configuration must be a map of fields");
      continue;
    }
    refuse_pointers(document, body, file_fields(), complaints);
    Amender amender(document, root, complaints);
    if (amendment.kind == Amendment::Kind::replace) {
      amender.replace(body);
    } else {
      amender.merge(body);
    }
  }
}

}  // namespace weir::config
