#include "weir/config/document.h"

#include <algorithm>
#include <limits>

#include "weir/base/assert.h"

namespace weir::config {

std::string Problem::text() const {
  if (line == 0) return file + ": " + sentence;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + sentence;
}

std::string text(const Problems& problems) {
  std::string out;
  for (const Problem& problem : problems) out += problem.text() + "\n";
  return out;
}

FileId Document::add_file(std::string name) {
  WEIR_ASSERT(files_.size() < std::numeric_limits<FileId>::max());
  files_.push_back(std::move(name));
  return static_cast<FileId>(files_.size() - 1);
}

NodeId Document::add(const Node& node) {
  WEIR_ASSERT(nodes_.size() < kNoNode);
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Document::copy(NodeId id) {
  Node twin = nodes_[id];
  twin.child = kNoNode;
  twin.next = kNoNode;
  const NodeId made = add(twin);
  NodeId last = kNoNode;
  for (NodeId child = nodes_[id].child; child != kNoNode; child = nodes_[child].next) {
    const NodeId copied = copy(child);
    (last == kNoNode ? nodes_[made].child : nodes_[last].next) = copied;
    last = copied;
  }
  return made;
}

Slice Document::keep(std::string_view text) {
  WEIR_ASSERT(text_.size() + text.size() <= std::numeric_limits<std::uint32_t>::max());
  const Slice slice{static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size())};
  text_ += text;
  return slice;
}

void Document::reserve(std::size_t nodes, std::size_t bytes) {
  nodes_.reserve(nodes_.size() + nodes);
  text_.reserve(text_.size() + bytes);
}

void Document::rewind(std::size_t nodes, std::size_t bytes) {
  nodes_.resize(nodes);
  text_.resize(bytes);
}

void Document::append(NodeId parent, NodeId child) {
  NodeId last = nodes_[parent].child;
  if (last == kNoNode) {
    nodes_[parent].child = child;
    return;
  }
  while (nodes_[last].next != kNoNode) last = nodes_[last].next;
  nodes_[last].next = child;
}

NodeId Document::add_entry(NodeId parent, FileId file, NodeKind kind, std::string_view key, std::string_view value) {
  Node node;
  node.kind = kind;
  node.file = file;
  node.key = keep(key);
  node.value = keep(value);
  const NodeId id = add(node);
  if (parent != kNoNode) append(parent, id);
  return id;
}

NodeId Document::find(NodeId parent, std::string_view key) const {
  for (const NodeId entry : children(parent)) {
    if (this->key(entry) == key) return entry;
  }
  return kNoNode;
}

NodeId Document::usable(NodeId parent, std::string_view key) const {
  const NodeId id = find(parent, key);
  return id == kNoNode || nodes_[id].refused ? kNoNode : id;
}

std::string_view Document::text(NodeId parent, std::string_view key) const {
  const NodeId id = usable(parent, key);
  return id == kNoNode ? std::string_view{} : value(id);
}

std::vector<NodeId> Document::items(NodeId parent, std::string_view key) const {
  std::vector<NodeId> out;
  const NodeId id = find(parent, key);
  if (is(id, NodeKind::scalar) && !nodes_[id].refused) out.push_back(id);
  for (const NodeId item : children(is(id, NodeKind::sequence) ? id : kNoNode)) {
    if (!nodes_[item].refused) out.push_back(item);
  }
  return out;
}

std::size_t Document::count(NodeId id) const {
  std::size_t size = 0;
  for (NodeId child = nodes_[id].child; child != kNoNode; child = nodes_[child].next) ++size;
  return size;
}

std::string Document::where(Mark mark) const {
  if (mark.line == 0) return files_[mark.file];
  return files_[mark.file] + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

Problems Complaints::sorted() const {
  std::vector<Entry> entries = entries_;
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  Problems problems;
  problems.reserve(entries.size());
  for (const Entry& entry : entries) {
    problems.push_back({document_->file(entry.mark.file), entry.mark.line, entry.mark.column, entry.sentence});
  }
  return problems;
}

}  // namespace weir::config
