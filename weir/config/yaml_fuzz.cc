// The quick reader and yaml-cpp give the same nodes for any bytes.
#include "weir/config/yaml.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"

namespace {

using namespace weir::config;

void expect_same(const Document& a, NodeId left, const Document& b, NodeId right) {
  WEIR_ASSERT((left == kNoNode) == (right == kNoNode));
  if (left == kNoNode) return;
  WEIR_ASSERT(a.node(left).kind == b.node(right).kind && a.node(left).quoted == b.node(right).quoted);
  WEIR_ASSERT(a.key(left) == b.key(right) && a.value(left) == b.value(right));
  WEIR_ASSERT(a.mark(left) == b.mark(right) && a.key_mark(left) == b.key_mark(right));
  auto other = b.children(right).begin();
  for (const NodeId child : a.children(left)) {
    expect_same(a, child, b, *other);
    ++other;
  }
  WEIR_ASSERT(other == b.children(right).end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Document quick, slow;
  Complaints quick_complaints(quick), slow_complaints(slow);
  const NodeId left = read_yaml(text, quick.add_file("t"), quick, quick_complaints);
  const NodeId right = read_by_yaml_cpp(text, slow.add_file("t"), slow, slow_complaints);
  WEIR_ASSERT(quick_complaints.sorted() == slow_complaints.sorted());
  expect_same(quick, left, slow, right);
  return 0;
}
