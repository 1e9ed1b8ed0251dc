#include "weir/cli/confirm.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "weir/base/ascii.h"
#include "weir/base/printable.h"
#include "weir/base/text.h"

namespace weir::cli {

bool can_ask() noexcept {
  return isatty(STDIN_FILENO) == 1;
}

bool confirmed(std::string_view question, Console& console) {
  console.out.flush();
  console.err.write(printable(question) + " [y/N] ");
  console.err.flush();
  constexpr std::size_t kLineBytesMax = 256;
  std::string line;
  while (line.size() < kLineBytesMax) {
    char c = 0;
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') break;
    line += c;
  }
  const std::string word = to_lower(trim(line));
  return word == "y" || word == "yes";
}

}  // namespace weir::cli
