#include "weir/server/known_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <type_traits>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/text.h"
#include "weir/store/memory/live_file.h"

namespace weir {
namespace {

constexpr std::string_view kHead = "weir known 1\n";
constexpr std::string_view kHex = "0123456789abcdef";

// --- writing ---

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._:/-@+").find(c) != std::string_view::npos;
}

void write_text(std::string_view name, std::string_view value, std::string& out) {
  out.append(" ").append(name).append("=");
  for (const char c : value) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
}

void write_number(std::string_view name, std::int64_t value, std::string& out) {
  out.append(" ").append(name).append("=");
  append_integer(value, out);
}

std::string checksum_of(std::string_view text) {
  std::uint64_t sum = siphash13(HashKey{0, 0}, text);
  std::string hex(16, '0');
  for (std::size_t i = hex.size(); i-- > 0; sum >>= 4) hex[i] = kHex[sum & 15];
  return hex;
}

// --- reading ---

Error refuse(std::string reason) {
  return Error{Fault::invalid, std::move(reason)};
}

int hex_digit(char c) noexcept {
  const std::size_t at = kHex.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// One line's fields. Each may be taken once; what is left over is a mistake.
class Fields {
 public:
  static Result<Fields> parse(std::string_view text) {
    Fields fields;
    while (!text.empty()) {
      if (text.front() != ' ') return refuse("fields are separated by one space");
      const std::size_t end = std::min(text.find(' ', 1), text.size());
      const std::string_view field = text.substr(1, end - 1);
      text.remove_prefix(end);
      const std::size_t equals = field.find('=');
      if (equals == std::string_view::npos) return refuse("a field has no value");
      std::string value;
      if (!decode(field.substr(equals + 1), value)) return refuse("a field's value is not written as it should be");
      if (!fields.all_.emplace(field.substr(0, equals), std::move(value)).second)
        return refuse("a field is there twice");
    }
    return fields;
  }

  std::optional<std::string> take(std::string_view name) {
    const auto found = all_.find(name);
    if (found == all_.end()) return std::nullopt;
    std::optional<std::string> value = std::move(found->second);
    all_.erase(found);
    return value;
  }
  std::string text(std::string_view name) { return take(name).value_or(""); }

  // False: it is there, and no number.
  template <class Number>
  bool number(std::string_view name, std::optional<Number>& out) {
    const std::optional<std::string> value = take(name);
    if (!value) return true;
    const Result<std::int64_t> parsed = parse_integer(*value);
    if (!parsed) return false;
    out = make<Number>(*parsed);
    return true;
  }

  bool empty() const noexcept { return all_.empty(); }

 private:
  template <class Number>
  static Number make(std::int64_t value) {
    if constexpr (std::is_same_v<Number, Wall>) {
      return Wall{Duration{value}};
    } else {
      return Number{value};
    }
  }

  static bool decode(std::string_view text, std::string& out) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_plain(text[i])) {
        out += text[i];
        continue;
      }
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (text[i] != '%' || high < 0 || low < 0) return false;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
    return true;
  }

  std::map<std::string, std::string, std::less<>> all_;
};

Result<Adjustment> read_adjustment(Fields& fields) {
  Adjustment one;
  std::optional<Wall> expires;
  one.limit = fields.text("limit");
  one.id = fields.text("id");
  one.added_by = fields.text("by");
  const bool numbers = fields.number("burst", one.burst) && fields.number("count", one.count) &&
                       fields.number("period", one.period) && fields.number("expires", expires);
  if (!numbers || !expires || one.limit.empty() || one.id.empty()) return refuse("an adjustment is incomplete");
  one.expires = *expires;
  return one;
}

Result<AccessEntry> read_entry(AccessEntry::List list, Fields& fields) {
  AccessEntry entry;
  entry.list = list;
  if (const std::optional<std::string> ip = fields.take("ip")) {
    const Result<IpPrefix> prefix = IpPrefix::parse(*ip);
    if (!prefix) return refuse("an entry's ip is none");
    entry.ip = *prefix;
  }
  entry.apikey = fields.text("apikey");
  entry.limit = fields.text("limit");
  entry.id = fields.text("id");
  entry.reason = fields.text("reason");
  entry.added_by = fields.text("by");
  if (!fields.number("expires", entry.expires)) return refuse("an entry's end is no number");
  if (const Result<void> good = check(entry); !good) return good.error();
  return entry;
}

Result<void> read_line(std::string_view line, Kept& kept) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  Result<Fields> fields = Fields::parse(line.substr(space));
  if (!fields) return fields.error();
  if (word == "adjust") {
    Result<Adjustment> one = read_adjustment(*fields);
    if (!one) return one.error();
    kept.adjustments.push_back(std::move(*one));
    if (kept.adjustments.size() > bounds::adjustments_max) return refuse("it holds too many adjustments");
  } else if (word == "allow" || word == "deny") {
    const auto list = word == "allow" ? AccessEntry::List::allow : AccessEntry::List::deny;
    Result<AccessEntry> one = read_entry(list, *fields);
    if (!one) return one.error();
    kept.entries.push_back(std::move(*one));
    if (kept.entries.size() > bounds::access_entries_max) return refuse("it holds too many entries");
  } else {
    return refuse("a line begins with a word that is not known");
  }
  if (!fields->empty()) return refuse("a line has a field that is not known");
  return {};
}

}  // namespace

std::string print_known(const Kept& kept) {
  std::string out(kHead);
  for (const Adjustment& one : kept.adjustments) {
    out += "adjust";
    write_text("limit", one.limit, out);
    write_text("id", one.id, out);
    if (one.burst) write_number("burst", *one.burst, out);
    if (one.count) write_number("count", *one.count, out);
    if (one.period) write_number("period", one.period->count(), out);
    write_number("expires", one.expires.time_since_epoch().count(), out);
    write_text("by", one.added_by, out);
    out += '\n';
  }
  for (const AccessEntry& one : kept.entries) {
    out += print(one.list);
    if (one.ip) write_text("ip", one.ip->print(), out);
    if (!one.apikey.empty()) write_text("apikey", one.apikey, out);
    if (!one.limit.empty()) write_text("limit", one.limit, out);
    if (!one.id.empty()) write_text("id", one.id, out);
    write_text("reason", one.reason, out);
    if (one.expires) write_number("expires", one.expires->time_since_epoch().count(), out);
    write_text("by", one.added_by, out);
    out += '\n';
  }
  const std::string sum = checksum_of(out);
  return out.append("end ").append(std::to_string(kept.adjustments.size() + kept.entries.size())) + " " + sum + "\n";
}

Result<Kept> parse_known(std::string_view text) {
  if (!text.starts_with(kHead)) return refuse("it does not begin with \"weir known 1\"");
  if (text.back() != '\n') return refuse("it ends in the middle of a line");
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  std::string_view rest = text.substr(kHead.size(), last - std::min(last, kHead.size()));
  Kept kept;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (const Result<void> read = read_line(rest.substr(0, end), kept); !read) return read.error();
    rest.remove_prefix(end + 1);
  }
  const std::string expected = "end " + std::to_string(kept.adjustments.size() + kept.entries.size()) + " " +
                               checksum_of(text.substr(0, last)) + "\n";
  if (text.substr(last) != expected) return refuse("its last line does not fit the rest of it");
  return kept;
}

KnownFile::KnownFile(std::string path, std::function<void(std::string_view)> log)
    : path_(std::move(path)), log_(std::move(log)) {
  if (!log_) log_ = [](std::string_view) {};
}

Result<Kept> KnownFile::load() {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Kept{};
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
  Result<Kept> kept = text.size() > bounds::known_file_bytes_max ? refuse("it is too large") : parse_known(text);
  if (kept) return kept;
  const Result<std::string> aside = keep_aside(path_);
  if (!aside) return aside.error();
  if (unlink(path_.c_str()) != 0) return system_error(path_, "remove");
  log_(path_ + " is refused, because " + kept.error().detail + "; it is kept as " + *aside +
       ", and adjustments and access entries made at run time are forgotten");
  return Kept{};
}

Result<void> KnownFile::save(const Kept& kept) {
  const std::string text = print_known(kept);
  const std::string beside = path_ + ".new";
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(beside, "make");
  std::string_view rest = text;
  bool good = true;
  while (good && !rest.empty()) {
    const ssize_t put = write(fd, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    good = put > 0;
    if (good) rest.remove_prefix(static_cast<std::size_t>(put));
  }
  good = good && fsync(fd) == 0;
  const Error failed = system_error(beside, "write");
  close(fd);
  if (good && rename(beside.c_str(), path_.c_str()) == 0) return sync_directory(path_);
  const Error error = good ? system_error(path_, "replace") : failed;
  unlink(beside.c_str());
  return error;
}

}  // namespace weir
