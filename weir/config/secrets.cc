#include "weir/config/secrets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::config {
namespace {

constexpr std::string_view kEnv = "env:";
constexpr std::string_view kFile = "file:";

void resolve_one(const Options& options, Document& document, NodeId id, const Field& field, Complaints& complaints) {
  const auto refuse = [&](const std::string& why) {
    document.node(id).refused = true;
    complaints.add(id, std::string(field.name) + ": " + why);
  };
  const std::string text(document.value(id));
  std::string secret;  // must not be empty: that would disable the check
  if (text.starts_with(kEnv)) {
    const std::string name = text.substr(kEnv.size());
    const auto found = options.environment.find(name);
    if (found == options.environment.end()) return refuse("the variable " + quote(name) + " is not set");
    secret = found->second;
    if (secret.empty()) return refuse("the variable " + quote(name) + " is empty");
  } else if (text.starts_with(kFile)) {
    const Result<std::string> read = read_file(options, text.substr(kFile.size()), bounds::secret_bytes_max);
    if (!read) return refuse(read.error().detail);
    secret = *read;
    // Editors and `echo` end a file with a line feed that is not part of the secret.
    if (secret.ends_with('\n')) secret.pop_back();
    if (secret.ends_with('\r')) secret.pop_back();
    if (secret.empty()) return refuse("the file " + quote(text.substr(kFile.size())) + " is empty");
  } else {
    return;
  }
  const Slice kept = document.keep(secret);
  document.node(id).value = kept;
}

// Reads the file, at most one block more than `bytes_max`. Waits for a pipe at most `pipe_patience`; a terminal may
// take any time.
Result<std::string> read_from_disk(const std::string& path, std::size_t bytes_max, Duration pipe_patience) {
  const auto fail = [&](const std::string& why) {
    return Error{Fault::unknown, "cannot read the file " + quote(path) + ": " + why};
  };
  const auto failed = [&] { return fail(std::generic_category().message(errno)); };
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return failed();
  const struct Closing {
    int fd;
    ~Closing() { close(fd); }
  } closing{fd};
  struct stat status {};
  if (fstat(fd, &status) != 0) return failed();
  std::string content;
  if (S_ISREG(status.st_mode)) content.reserve(std::min(static_cast<std::size_t>(status.st_size), bytes_max));
  std::string block(1u << 16, '\0');
  const int patience = S_ISFIFO(status.st_mode) ? static_cast<int>(pipe_patience / std::chrono::milliseconds{1}) : -1;
  while (content.size() <= bytes_max) {
    pollfd readable{fd, POLLIN, 0};
    if (!S_ISREG(status.st_mode) && poll(&readable, 1, patience) == 0) {
      return fail("it is a pipe, and nothing was written to it in time");
    }
    const ssize_t got = read(fd, block.data(), block.size());
    if (got == 0) return content;
    if (got > 0) content.append(block, 0, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR && errno != EAGAIN) return failed();
  }
  return content;
}

}  // namespace

Result<std::string> read_file(const Options& options, const std::string& path, std::size_t bytes_max) {
  if (options.reading) options.reading(path);
  Result<std::string> content =
      options.read ? options.read(path) : read_from_disk(path, bytes_max, options.pipe_patience);
  if (!content || content->size() <= bytes_max) return content;
  return Error{Fault::too_large, "the file " + quote(path) + " is larger than " + std::to_string(bytes_max) + " bytes"};
}

void resolve_secrets(const Options& options, Document& document, NodeId section, std::span<const Field> fields,
                     Complaints& complaints) {
  for (const Field& field : fields) {
    if (field.type != Type::secret && field.type != Type::section) continue;
    const NodeId id = document.find(section, field.name);
    if (id == kNoNode) continue;
    const auto resolve = [&](NodeId value) {
      const NodeKind kind = document.node(value).kind;
      if (field.type == Type::section && kind == NodeKind::map) {
        resolve_secrets(options, document, value, field.fields, complaints);
      } else if (field.type == Type::secret && kind == NodeKind::scalar && !document.node(value).refused) {
        resolve_one(options, document, value, field, complaints);
        if (document.node(value).refused) document.node(section).refused = true;
      }
    };
    const bool map = field.shape == Shape::map || field.shape == Shape::map_or_path;
    if (!map && document.node(id).kind != NodeKind::sequence) {
      resolve(id);
      continue;
    }
    for (const NodeId item : document.children(id)) resolve(item);
  }
}

}  // namespace weir::config
