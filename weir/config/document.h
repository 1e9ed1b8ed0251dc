// A configuration as a tree whose nodes know their positions in the source. yaml.h builds it, environment.h applies
// variables to it, check.h validates it against the table. Compact, because an overrides file may have a million
// entries: all nodes are in one vector and all text in one string, and a map entry is a single node that includes its
// key.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/config/problem.h"

namespace weir::config {

using FileId = std::uint16_t;
using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffff'ffff;

// A position. Lines and columns count from 1. Line 0: a variable or a flag, which has only a name.
struct Mark {
  FileId file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  friend auto operator<=>(const Mark&, const Mark&) = default;
};

enum class NodeKind : unsigned char { null, scalar, sequence, map };

// A part of Document's text.
struct Slice {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct Node {
  NodeKind kind = NodeKind::null;
  bool quoted = false;   // a quoted or block scalar: always text, never a number or a flag
  bool refused = false;  // a problem was reported here or below: later readers skip it
  FileId file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t key_line = 0;  // entries of a map only
  std::uint32_t key_column = 0;
  Slice key;
  Slice value;
  NodeId child = kNoNode;
  NodeId next = kNoNode;
};

class Document {
 public:
  // Adds a file, variable or flag under the name used in problems.
  FileId add_file(std::string name);
  const std::string& file(FileId id) const { return files_[id]; }

  NodeId add(const Node& node);
  NodeId copy(NodeId id);  // deep; the copy has no sibling
  Slice keep(std::string_view text);
  void append(NodeId parent, NodeId child);  // linear in the parent's children
  // Adds a last child to `parent`, which may be kNoNode. The child has no line, because it comes from a variable or a
  // flag.
  NodeId add_entry(NodeId parent, FileId file, NodeKind kind, std::string_view key, std::string_view value = {});

  // Reserves space for this many more nodes and bytes, so that a large file's nodes are not copied while it grows.
  void reserve(std::size_t nodes, std::size_t bytes);
  // Restores the state in which it had `nodes` nodes and `bytes` of text.
  void rewind(std::size_t nodes, std::size_t bytes);
  std::size_t text_bytes() const noexcept { return text_.size(); }

  Node& node(NodeId id) { return nodes_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  std::size_t size() const noexcept { return nodes_.size(); }
  std::string_view view(Slice slice) const { return std::string_view(text_).substr(slice.offset, slice.size); }
  std::string_view key(NodeId id) const { return view(nodes_[id].key); }
  std::string_view value(NodeId id) const { return view(nodes_[id].value); }
  Mark mark(NodeId id) const { return {nodes_[id].file, nodes_[id].line, nodes_[id].column}; }
  Mark key_mark(NodeId id) const { return {nodes_[id].file, nodes_[id].key_line, nodes_[id].key_column}; }
  NodeId find(NodeId parent, std::string_view key) const;  // kNoNode if there is none; parent may be kNoNode
  // The same, but skip refused nodes: usable() returns the entry or kNoNode, text() its text or an empty one, items()
  // the items of a list, or a single value given instead of a list.
  NodeId usable(NodeId parent, std::string_view key) const;
  std::string_view text(NodeId parent, std::string_view key) const;
  std::vector<NodeId> items(NodeId parent, std::string_view key) const;
  std::size_t count(NodeId id) const;  // of its children
  bool is(NodeId id, NodeKind kind) const { return id != kNoNode && nodes_[id].kind == kind; }

  // "weir.yaml:12:3", or the variable's name.
  std::string where(Mark mark) const;

  // The longest window, from empty to full, that a limit may have. It depends on the store.
  Duration window_max() const noexcept { return window_max_; }
  void hold_windows_to(Duration window_max) noexcept { window_max_ = window_max; }

  // for (NodeId entry : document.children(id))
  class Children {
   public:
    class Iterator {
     public:
      Iterator(const Document& document, NodeId id) : document_(&document), id_(id) {}
      NodeId operator*() const { return id_; }
      Iterator& operator++() {
        id_ = document_->node(id_).next;
        return *this;
      }
      bool operator==(const Iterator& other) const { return id_ == other.id_; }

     private:
      const Document* document_;
      NodeId id_;
    };
    Children(const Document& document, NodeId first) : document_(&document), first_(first) {}
    Iterator begin() const { return {*document_, first_}; }
    Iterator end() const { return {*document_, kNoNode}; }

   private:
    const Document* document_;
    NodeId first_;
  };
  Children children(NodeId id) const { return {*this, id == kNoNode ? kNoNode : nodes_[id].child}; }

 private:
  std::vector<Node> nodes_;
  std::vector<std::string> files_;
  std::string text_;
  Duration window_max_ = bounds::window_max;
};

// Collects problems in any order. Returns them sorted and without duplicates.
class Complaints {
 public:
  explicit Complaints(const Document& document) : document_(&document) {}
  void add(Mark mark, std::string sentence) { entries_.push_back({mark, std::move(sentence)}); }
  void add(NodeId id, std::string sentence) { add(document_->mark(id), std::move(sentence)); }
  void add_at_key(NodeId id, std::string sentence) { add(document_->key_mark(id), std::move(sentence)); }
  void add_all(const Complaints& more) { entries_.insert(entries_.end(), more.entries_.begin(), more.entries_.end()); }
  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  Problems sorted() const;

 private:
  struct Entry {
    Mark mark;
    std::string sentence;

    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  const Document* document_;
  std::vector<Entry> entries_;
};

}  // namespace weir::config
