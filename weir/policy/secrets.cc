#include "weir/policy/secrets.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::policy {
namespace {

constexpr std::string_view kEnv = "env:";
constexpr std::string_view kFile = "file:";

void resolve_one(const Options& options, Document& document, NodeId id, const Field& field, Complaints& complaints) {
  const auto refuse = [&](const std::string& why) {
    document.node(id).refused = true;
    complaints.add(document.mark(id), std::string(field.name) + ": " + why);
  };
  const std::string text(document.value(id));
  std::string secret;  // an empty one would be none: whoever asked for one would be let in without
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
    // Editors and `echo` end a file with a line feed that is not meant.
    if (secret.ends_with('\n')) secret.pop_back();
    if (secret.ends_with('\r')) secret.pop_back();
    if (secret.empty()) return refuse("the file " + quote(text.substr(kFile.size())) + " is empty");
  } else {
    return;
  }
  const Slice kept = document.keep(secret);
  document.node(id).value = kept;
}

}  // namespace

Result<std::string> read_file(const Options& options, const std::string& path, std::size_t bytes_max) {
  if (options.reading) options.reading(path);
  std::string content;
  if (options.read) {
    Result<std::string> read = options.read(path);
    if (!read) return read;
    content = std::move(*read);
  } else {
    struct Close {
      void operator()(std::FILE* file) const { std::fclose(file); }
    };
    const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
    std::size_t got = 0;
    if (file) {
      struct stat status {};
      if (fstat(fileno(file.get()), &status) == 0 && S_ISREG(status.st_mode)) {
        content.reserve(std::min(static_cast<std::size_t>(status.st_size), bytes_max));
      }
      std::string block(1u << 16, '\0');
      while (content.size() <= bytes_max && (got = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
        content.append(block, 0, got);
      }
    }
    // A directory opens and fails only when it is read.
    if (!file || std::ferror(file.get()) != 0) {
      return Error{Fault::unknown,
                   "cannot read the file " + quote(path) + ": " + std::generic_category().message(errno)};
    }
  }
  if (content.size() <= bytes_max) return content;
  return Error{Fault::too_large, "the file " + quote(path) + " is larger than " + std::to_string(bytes_max) + " bytes"};
}

void resolve_secrets(const Options& options, Document& document, NodeId section, std::span<const Field> fields,
                     Complaints& complaints) {
  for (const Field& field : fields) {
    const bool map = field.shape == Shape::map || field.shape == Shape::map_or_path;
    if (map || (field.type != Type::secret && field.type != Type::section)) continue;
    const NodeId id = document.find(section, field.name);
    if (id == kNoNode) continue;
    const auto resolve = [&](NodeId value) {
      const NodeKind kind = document.node(value).kind;
      if (field.type == Type::section && kind == NodeKind::map) {
        resolve_secrets(options, document, value, field.fields, complaints);
      } else if (field.type == Type::secret && kind == NodeKind::scalar) {
        resolve_one(options, document, value, field, complaints);
        if (document.node(value).refused) document.node(section).refused = true;
      }
    };
    if (document.node(id).kind != NodeKind::sequence) {
      resolve(id);
      continue;
    }
    for (NodeId item = document.node(id).child; item != kNoNode; item = document.node(item).next) resolve(item);
  }
}

}  // namespace weir::policy
