// The files of the dashboard (web/), built into the program.
#pragma once

#include <span>
#include <string_view>

namespace weir::admin {

struct Asset {
  std::string_view name;  // "weir.js"
  std::string_view tag;   // the ETag, with its quotes; changes with the content
  std::string_view plain;
  std::string_view gzip;  // the same, compressed
};

// Has static storage duration.
std::span<const Asset> assets();

}  // namespace weir::admin
