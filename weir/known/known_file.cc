#include "weir/known/known_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <variant>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/files.h"
#include "weir/base/siphash.h"
#include "weir/known/known_line.h"

namespace weir {
namespace {

constexpr std::string_view kHead = "weir known 1\n";

std::string checksum_of(std::string_view text) {
  const std::uint64_t sum = siphash13(HashKey{0, 0}, text);
  std::string hex;
  for (int shift = 56; shift >= 0; shift -= 8) append_hex(static_cast<unsigned char>(sum >> shift), hex);
  return hex;
}

Error bad_file(std::string reason) {
  return Error{Fault::invalid, std::move(reason)};
}

Result<void> read_line(std::string_view line, SavedKnown& saved) {
  Result<KnownLine> read = parse_line(line);
  if (!read) return read.error();
  if (read->block) return bad_file("it contains an automatic block");
  if (auto* one = std::get_if<Adjustment>(&read->what)) {
    saved.adjustments.push_back(std::move(*one));
    if (saved.adjustments.size() > bounds::adjustments_max) return bad_file("it has too many adjustments");
  } else {
    saved.entries.push_back(std::move(std::get<AccessEntry>(read->what)));
    if (saved.entries.size() > bounds::access_entries_max) return bad_file("it has too many access entries");
  }
  return {};
}

}  // namespace

std::string print_known(const SavedKnown& saved) {
  std::string out(kHead);
  for (const Adjustment& one : saved.adjustments) out.append(print_line(one)) += '\n';
  for (const AccessEntry& one : saved.entries) out.append(print_line(one)) += '\n';
  const std::string sum = checksum_of(out);
  return out.append("end ").append(std::to_string(saved.adjustments.size() + saved.entries.size())) + " " + sum + "\n";
}

Result<SavedKnown> parse_known(std::string_view text) {
  if (!text.starts_with(kHead)) return bad_file("it does not start with \"weir known 1\"");
  if (text.back() != '\n') return bad_file("it ends in the middle of a line");
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  std::string_view rest = text.substr(kHead.size(), last - std::min(last, kHead.size()));
  SavedKnown saved;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (const Result<void> read = read_line(rest.substr(0, end), saved); !read) return read.error();
    rest.remove_prefix(end + 1);
  }
  const std::string expected = "end " + std::to_string(saved.adjustments.size() + saved.entries.size()) + " " +
                               checksum_of(text.substr(0, last)) + "\n";
  if (text.substr(last) != expected) return bad_file("its checksum does not match");
  return saved;
}

KnownFile::KnownFile(std::string path, std::function<void(std::string_view)> log)
    : path_(std::move(path)), log_(std::move(log)) {
  if (!log_) log_ = [](std::string_view) {};
}

Result<SavedKnown> KnownFile::load() {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return SavedKnown{};
  if (fd < 0) return system_error(path_, "open");
  std::string text;
  char buffer[16 << 10];
  ssize_t got = 0;
  while (text.size() <= bounds::known_file_bytes_max && (got = read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const Error failed = system_error(path_, "read");
  close(fd);
  if (got < 0) return failed;
  Result<SavedKnown> loaded =
      text.size() > bounds::known_file_bytes_max ? bad_file("it is too large") : parse_known(text);
  if (loaded) return loaded;
  const Result<std::string> aside = keep_aside(path_);
  if (!aside) return aside.error();
  if (unlink(path_.c_str()) != 0) return system_error(path_, "remove");
  log_("saved adjustments and access entries not loaded: " + path_ + " is damaged: " + loaded.error().detail +
       "; moved to " + *aside);
  return SavedKnown{};
}

Result<void> KnownFile::save(const SavedKnown& saved) {
  const std::string text = print_known(saved);
  const std::string temporary = path_ + ".new";
  (void)unlink(temporary.c_str());  // left by a process that was killed; no other process writes here
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(temporary, "create");
  std::string_view rest = text;
  bool good = true;
  while (good && !rest.empty()) {
    const ssize_t put = write(fd, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    good = put > 0;
    if (good) rest.remove_prefix(static_cast<std::size_t>(put));
  }
  good = good && fsync(fd) == 0;
  const Error failed = system_error(temporary, "write");
  close(fd);
  if (good && rename(temporary.c_str(), path_.c_str()) == 0) return sync_directory(path_);
  const Error error = good ? system_error(path_, "replace") : failed;
  unlink(temporary.c_str());
  return error;
}

}  // namespace weir
