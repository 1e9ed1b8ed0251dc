// Any line is read or refused with a message, and either way the answer is a line of JSON.
#include <cstddef>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/simulate/trace.h"
#include "weir/wire/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weir::simulate::TraceReader reader;
  static weir::JsonReader json;
  weir::simulate::TraceLine line;
  const auto read = reader.read({reinterpret_cast<const char*>(data), size}, line);
  std::string out;
  if (read) {
    WEIR_ASSERT(line.t.has_value() && !line.charges.empty());
    weir::simulate::write_answer(*line.t, {line.charges[0].limit, line.charges[0].id, {}, true}, out);
  } else {
    WEIR_ASSERT(!read.error().detail.empty());
    weir::simulate::write_error(line.t, read.error().detail, out);
  }
  WEIR_ASSERT(out.find('\n') + 1 == out.size());
  WEIR_ASSERT(out.size() > weir::bounds::json_bytes_max || json.read(out).has_value());
  return 0;
}
