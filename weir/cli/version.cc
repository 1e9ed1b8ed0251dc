#include "weir/cli/version.h"
#include "weir/cli/commands.h"

namespace weir::cli {

std::string_view version_number() {
  return WEIR_VERSION;
}

std::string version_text() {
#if defined(__clang__)
  constexpr std::string_view compiler = "clang " __clang_version__;
#else
  constexpr std::string_view compiler = "g++ " __VERSION__;
#endif
  constexpr std::string_view build = WEIR_BUILD;
  return "weir " WEIR_VERSION " (" + std::string(compiler.substr(0, compiler.find_last_not_of(' ') + 1)) + ", " +
         std::string(build.empty() ? "plain" : build) + ")\n";
}

Command version() {
  return {"version",
          "print the version",
          "Prints the version, the compiler and the kind of build.",
          {},
          "weir version",
          [](const Arguments&, Console& console) {
            console.out.write(version_text());
            return kOk;
          }};
}

}  // namespace weir::cli
