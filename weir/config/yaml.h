// Parses YAML into a Document. Size, depth and the expansion of aliases are bounded. A fast reader handles the common
// subset (plain_yaml.h), yaml-cpp everything else; both produce the same nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.h"

namespace weir::config {

// Parses one file and returns its root node. Reports syntax errors to `complaints` and returns kNoNode. For an empty
// file, returns a null node.
NodeId read_yaml(std::string_view text, FileId file, Document& document, Complaints& complaints);

// The same with yaml-cpp only, for comparison.
NodeId read_by_yaml_cpp(std::string_view text, FileId file, Document& document, Complaints& complaints);

// Turns a reader's events into nodes. At the first event beyond a bound, complains once and ignores the rest.
class TreeBuilder {
 public:
  TreeBuilder(FileId file, Document& document, Complaints& complaints)
      : file_(file), document_(document), complaints_(complaints) {}

  void null(std::uint32_t line, std::uint32_t column, std::size_t anchor = 0);
  void scalar(std::uint32_t line, std::uint32_t column, std::string_view text, bool quoted, std::size_t anchor = 0);
  void begin(NodeKind kind, std::uint32_t line, std::uint32_t column, std::size_t anchor = 0);
  void end();
  void alias(std::uint32_t line, std::uint32_t column, std::size_t anchor);
  void refuse(std::uint32_t line, std::uint32_t column, std::string sentence);

  bool failed() const noexcept { return failed_; }
  NodeId root() const noexcept { return root_; }

 private:
  // An open map or sequence.
  struct Level {
    NodeId id;
    NodeId last;       // its newest child
    bool wants_value;  // a map whose next node belongs to `key`
    Node key;          // key text and position, until its value arrives
    bool merges;       // a map that has the key `<<`
  };

  Node make(NodeKind kind, std::uint32_t line, std::uint32_t column) const;
  bool wants_key() const;  // the next node is a key of the innermost map
  NodeId attach(Level& level, NodeId id);
  void place_leaf(NodeKind kind, std::uint32_t line, std::uint32_t column, Slice value, bool quoted,
                  std::size_t anchor);
  // Adds a finished scalar, or a container that just began, to its parent.
  NodeId place(const Node& node, std::size_t anchor);
  // Replaces the merge key `<<` of a finished map by the entries of the map, or the maps, that it names. The map's own
  // entries take precedence, then the earlier of several maps.
  void merge(NodeId map);

  FileId file_;
  Document& document_;
  Complaints& complaints_;
  std::vector<Level> open_;
  std::map<std::size_t, NodeId> anchors_;  // of finished nodes
  std::vector<std::pair<std::size_t, NodeId>> open_anchors_;
  std::size_t alias_nodes_ = 0;
  NodeId root_ = kNoNode;
  bool failed_ = false;
};

}  // namespace weir::config
