#include "weir/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <optional>
#include <streambuf>
#include <unordered_set>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/plain_yaml.h"
#include "weir/config/spellings.h"
#include "weir/config/yaml_guard.h"
#include "weir/identify/quote.h"

namespace weir::config {

void TreeBuilder::refuse(std::uint32_t line, std::uint32_t column, std::string sentence) {
  if (failed_) return;
  failed_ = true;
  complaints_.add({file_, line, column}, std::move(sentence));
}

NodeId TreeBuilder::place(const Node& node, std::size_t anchor) {
  Node placed = node;
  if (open_.empty()) {
    root_ = document_.add(placed);
    if (anchor != 0) open_anchors_.emplace_back(anchor, root_);
    return root_;
  }
  Level& level = open_.back();
  if (level.wants_value) {
    placed.key = level.key.key;
    placed.key_line = level.key.key_line;
    placed.key_column = level.key.key_column;
    // An absent value has no position; use its key's.
    if (placed.kind == NodeKind::null) {
      placed.line = placed.key_line;
      placed.column = placed.key_column;
    }
  }
  const NodeId id = attach(level, document_.add(placed));
  if (anchor != 0) open_anchors_.emplace_back(anchor, id);
  return id;
}

void TreeBuilder::null(std::uint32_t line, std::uint32_t column, std::size_t anchor) {
  if (failed_) return;
  if (wants_key()) {
    return refuse(line, column, "a key must not be empty");
  }
  place_leaf(NodeKind::null, line, column, {}, false, anchor);
}

// An anchor of a scalar or a null can be used immediately: the node is complete.
void TreeBuilder::place_leaf(NodeKind kind, std::uint32_t line, std::uint32_t column, Slice value, bool quoted,
                             std::size_t anchor) {
  Node node = make(kind, line, column);
  node.quoted = quoted;
  node.value = value;
  place(node, anchor);
  if (anchor == 0) return;
  anchors_[anchor] = open_anchors_.back().second;
  open_anchors_.pop_back();
}

Node TreeBuilder::make(NodeKind kind, std::uint32_t line, std::uint32_t column) const {
  Node node;
  node.kind = kind;
  node.file = file_;
  node.line = line;
  node.column = column;
  return node;
}

bool TreeBuilder::wants_key() const {
  return !open_.empty() && document_.node(open_.back().id).kind == NodeKind::map && !open_.back().wants_value;
}

NodeId TreeBuilder::attach(Level& level, NodeId id) {
  (level.last == kNoNode ? document_.node(level.id).child : document_.node(level.last).next) = id;
  level.last = id;
  level.wants_value = false;
  return id;
}

void TreeBuilder::scalar(std::uint32_t line, std::uint32_t column, std::string_view text, bool quoted,
                         std::size_t anchor) {
  if (failed_) return;
  if (wants_key()) {
    Level& level = open_.back();
    level.key.key = document_.keep(text);
    level.key.key_line = line;
    level.key.key_column = column;
    level.wants_value = true;
    level.merges |= text == "<<";
    return;
  }
  place_leaf(NodeKind::scalar, line, column, document_.keep(text), quoted, anchor);
}

void TreeBuilder::begin(NodeKind kind, std::uint32_t line, std::uint32_t column, std::size_t anchor) {
  if (failed_) return;
  if (wants_key()) {
    return refuse(line, column, "a key must be a single text, not a list or a map");
  }
  if (open_.size() >= static_cast<std::size_t>(bounds::config_depth_max)) {
    return refuse(line, column, "nests deeper than " + std::to_string(bounds::config_depth_max) + " levels");
  }
  const NodeId id = place(make(kind, line, column), anchor);
  open_.push_back({id, kNoNode, false, {}, false});
}

void TreeBuilder::merge(NodeId map) {
  std::vector<NodeId> keys;
  std::unordered_set<std::string_view> taken;
  for (const NodeId entry : document_.children(map)) {
    if (document_.key(entry) == "<<") keys.push_back(entry);
    taken.insert(document_.key(entry));
  }
  const Node merged = document_.node(keys.front());
  if (keys.size() > 1) {
    const Node& twin = document_.node(keys[1]);
    return refuse(twin.key_line, twin.key_column, "key \"<<\" is written twice; write a list to merge several maps");
  }
  std::vector<NodeId> maps{keys.front()};
  if (merged.kind == NodeKind::sequence) {
    maps.clear();
    for (const NodeId item : document_.children(keys.front())) maps.push_back(item);
  }
  drop(document_, map, "<<");
  NodeId last = kNoNode;
  for (const NodeId entry : document_.children(map)) last = entry;
  for (const NodeId source : maps) {
    if (document_.node(source).kind != NodeKind::map) {
      return refuse(merged.key_line, merged.key_column, "\"<<\" must be a map or a list of maps");
    }
    for (NodeId entry = document_.node(source).child; entry != kNoNode;) {
      const NodeId next = std::exchange(document_.node(entry).next, kNoNode);
      if (taken.insert(document_.key(entry)).second) {
        (last == kNoNode ? document_.node(map).child : document_.node(last).next) = entry;
        last = entry;
      }
      entry = next;
    }
  }
}

void TreeBuilder::end() {
  if (failed_) return;
  const NodeId id = open_.back().id;
  if (open_.back().merges) merge(id);
  open_.pop_back();
  if (!open_anchors_.empty() && open_anchors_.back().second == id) {
    anchors_[open_anchors_.back().first] = id;
    open_anchors_.pop_back();
  }
}

void TreeBuilder::alias(std::uint32_t line, std::uint32_t column, std::size_t anchor) {
  if (failed_) return;
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) return refuse(line, column, "an alias must not be inside the value it names");
  Level* level = open_.empty() ? nullptr : &open_.back();
  if (level == nullptr || wants_key()) {
    return refuse(line, column, "a key must be a single text, not an alias");
  }
  // Nested aliases expand exponentially, so the total number of copied nodes is bounded.
  const std::size_t before = document_.size();
  std::vector<NodeId> pending{found->second};
  std::size_t repeated = 0;
  while (!pending.empty() && repeated + alias_nodes_ <= bounds::config_alias_nodes_max) {
    const NodeId id = pending.back();
    pending.pop_back();
    ++repeated;
    for (const NodeId child : document_.children(id)) pending.push_back(child);
  }
  alias_nodes_ += repeated;
  if (alias_nodes_ > bounds::config_alias_nodes_max) {
    return refuse(line, column,
                  "aliases repeat more than " + std::to_string(bounds::config_alias_nodes_max) + " values");
  }
  const NodeId copied = document_.copy(found->second);
  WEIR_ASSERT(document_.size() == before + repeated);
  Node& node = document_.node(copied);
  node.key = level->key.key;
  node.key_line = level->key.key_line;
  node.key_column = level->key.key_column;
  attach(*level, copied);
}

namespace {

// Reads a string_view as a stream, without copying it.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    // A get area is never written to.
    char* begin = const_cast<char*>(text.data());  // NOLINT
    setg(begin, begin, begin + text.size());
  }
};

// yaml-cpp decodes the escapes \N and \_ to one byte each, which is not UTF-8: U+0085 and U+00A0 take two.
std::string spelled(const std::string& value) {
  std::string out;
  for (std::size_t i = 0; i < value.size();) {
    const std::size_t length = utf8_sequence(std::string_view(value).substr(i));
    if (length == 0) out += '\xc2';
    out.append(value, i, std::max<std::size_t>(length, 1));
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

// Passes yaml-cpp's events to a TreeBuilder and a YamlGuard. yaml-cpp's marks count from 0.
class Handler final : public YAML::EventHandler {
 public:
  Handler(TreeBuilder& builder, YamlGuard& guard) : builder_(builder), guard_(guard) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) builder_.refuse(line(mark), column(mark), "a second document begins here; one is expected");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    guard_.other();
    builder_.null(line(mark), column(mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    guard_.other();
    builder_.alias(line(mark), column(mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // "?" is a plain scalar, "!" a quoted one.
    if (!flaw_) flaw_ = guard_.scalar(offset(mark), tag != "?");
    if (tag != "?" && tag != "!") return refuse_tag(mark, tag);
    builder_.scalar(line(mark), column(mark), tag == "!" ? spelled(value) : value, tag == "!", anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    guard_.begin(offset(mark), false);
    if (tag != "?" && !tag.empty()) return refuse_tag(mark, tag);
    builder_.begin(NodeKind::sequence, line(mark), column(mark), anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    guard_.begin(offset(mark), style == YAML::EmitterStyle::Block);
    if (tag != "?" && !tag.empty()) return refuse_tag(mark, tag);
    builder_.begin(NodeKind::map, line(mark), column(mark), anchor);
  }
  void OnMapEnd() override { end(); }

  // What the guard found. It takes precedence over other errors, because they probably follow from the unclosed quote.
  const std::optional<TextFlaw>& flaw() const noexcept { return flaw_; }

 private:
  void end() {
    guard_.end();
    builder_.end();
  }
  static std::uint32_t line(const YAML::Mark& mark) { return static_cast<std::uint32_t>(mark.line + 1); }
  static std::uint32_t column(const YAML::Mark& mark) { return static_cast<std::uint32_t>(mark.column + 1); }
  static std::size_t offset(const YAML::Mark& mark) { return static_cast<std::size_t>(mark.pos); }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    builder_.refuse(line(mark), column(mark), "the tag " + quote(tag) + " is not supported");
  }

  TreeBuilder& builder_;
  YamlGuard& guard_;
  std::optional<TextFlaw> flaw_;
  int documents_ = 0;
};

// Returns the first byte that is not allowed in a configuration, or text.size().
std::size_t find_bad_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      const bool control = (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
      if (control) return i;
      ++i;
      continue;
    }
    const std::size_t length = utf8_sequence(text.substr(i));
    // Of U+0080 to U+009F, YAML allows only the line end U+0085.
    const bool line_end = byte == 0xc2 && text.substr(i, length) == "\u0085";
    if (length == 0 || (byte == 0xc2 && !line_end && has_control(text.substr(i, length)))) return i;
    i += length;
  }
  return text.size();
}

void refuse_byte(std::string_view text, std::size_t at, TreeBuilder& builder) {
  std::uint32_t line = 1;
  std::size_t start = 0;
  for (std::size_t i = 0; i < at; ++i) {
    if (text[i] != '\n') continue;
    ++line;
    start = i + 1;
  }
  const bool wide = utf8_sequence(text.substr(at)) > 1;
  const auto byte = static_cast<unsigned char>(text[wide ? at + 1 : at]);
  std::string shown = wide ? "U+00" : "byte 0x";
  append_hex(byte, shown);
  builder.refuse(line, static_cast<std::uint32_t>(at - start + 1),
                 shown + (wide || byte < 0x80 ? " is a control character" : " is not part of valid UTF-8"));
}

// Returns false after a complaint: too large, or not text.
bool is_text(std::string_view text, TreeBuilder& builder) {
  if (text.size() > bounds::config_bytes_max) {
    builder.refuse(1, 1, "is larger than " + std::to_string(bounds::config_bytes_max >> 20) + " MiB");
    return false;
  }
  const std::size_t bad = find_bad_byte(text);
  if (bad == text.size()) return true;
  refuse_byte(text, bad, builder);
  return false;
}

NodeId finish(const TreeBuilder& builder, FileId file, Document& document) {
  if (builder.failed()) return kNoNode;
  if (builder.root() != kNoNode) return builder.root();
  Node empty;
  empty.file = file;
  empty.line = 1;
  empty.column = 1;
  return document.add(empty);
}

// For an unclosed quote, yaml-cpp reports only the end of the text. It accepts the text up to there with a line feed
// appended, and then the guard finds the opening quote.
std::optional<TextFlaw> find_open_quote(const YamlGuard& guard, const YAML::Exception& error) {
  const bool ends = error.msg == YAML::ErrorMsg::EOF_IN_SCALAR;
  if (!ends && error.msg != YAML::ErrorMsg::DOC_IN_SCALAR) return std::nullopt;
  Document scratch;
  Complaints complaints(scratch);
  const std::string text = std::string(guard.before(static_cast<std::size_t>(error.mark.pos))) + "\n";
  read_by_yaml_cpp(text, scratch.add_file(""), scratch, complaints);
  const Problems problems = complaints.sorted();
  if (problems.empty() || problems.front().sentence != kNeverClosed) return std::nullopt;
  return TextFlaw{problems.front().line, problems.front().column,
                  ends ? std::string(kNeverClosed)
                       : "this quote is not closed before line " + std::to_string(error.mark.line + 1) +
                             ", where a document begins or ends"};
}

void refuse_yaml(const YamlGuard& guard, const YAML::Exception& error, TreeBuilder& builder) {
  if (error.mark.is_null()) return builder.refuse(1, 1, "not valid YAML: " + error.msg);
  if (builder.failed()) return;
  std::optional<TextFlaw> flaw = find_open_quote(guard, error);
  if (!flaw) flaw = guard.explain(static_cast<std::size_t>(error.mark.pos));
  if (flaw) return builder.refuse(flaw->line, flaw->column, std::move(flaw->sentence));
  builder.refuse(static_cast<std::uint32_t>(error.mark.line + 1), static_cast<std::uint32_t>(error.mark.column + 1),
                 "not valid YAML: " + error.msg);
}

}  // namespace

NodeId read_by_yaml_cpp(std::string_view text, FileId file, Document& document, Complaints& complaints) {
  Complaints own(document);
  TreeBuilder builder(file, document, own);
  if (!is_text(text, builder)) {
    complaints.add_all(own);
    return kNoNode;
  }
  YamlGuard guard(text);
  Handler handler(builder, guard);
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  try {
    YAML::Parser parser(stream);
    while (!builder.failed() && parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& e) {
    refuse_yaml(guard, e, builder);
  }
  if (handler.flaw()) {
    const TextFlaw& flaw = *handler.flaw();
    complaints.add({file, flaw.line, flaw.column}, flaw.sentence);
    return kNoNode;
  }
  complaints.add_all(own);
  return finish(builder, file, document);
}

NodeId read_yaml(std::string_view text, FileId file, Document& document, Complaints& complaints) {
  TreeBuilder builder(file, document, complaints);
  if (!is_text(text, builder)) return kNoNode;
  const std::size_t nodes = document.size();
  const std::size_t bytes = document.text_bytes();
  document.reserve(static_cast<std::size_t>(std::ranges::count(text, ':')), text.size());
  if (read_plain_yaml(text, builder)) return finish(builder, file, document);
  document.rewind(nodes, bytes);
  return read_by_yaml_cpp(text, file, document, complaints);
}

}  // namespace weir::config
