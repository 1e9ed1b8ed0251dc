#include "weir/redis/shared_hash.h"

#include <array>
#include <charconv>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/redis/targets.h"

namespace weir::redis {
namespace {

constexpr std::string_view kVersion = "version";
constexpr std::string_view kModes[] = {"put", "fill", "remove", "finish"};

// Returns the counter of a version.
std::uint64_t count_of(std::string_view version) {
  std::uint64_t count = 0;
  std::from_chars(version.data(), version.data() + version.size(), count);
  return count;
}

std::string token_of(std::uint64_t number) {
  char text[16];
  const auto [end, fault] = std::to_chars(text, text + sizeof text, number, 16);
  static_cast<void>(fault);  // 16 digits hold every number
  return std::string(text, end);
}

void apply(SharedHash::Change change, const std::vector<std::string>& words, SharedHash::Texts& texts) {
  using Change = SharedHash::Change;
  for (std::size_t i = 0; i < words.size(); i += change == Change::remove ? 1 : change == Change::finish ? 3 : 2) {
    if (change == Change::put) texts.insert_or_assign(words[i], words[i + 1]);
    if (change == Change::fill) texts.emplace(words[i], words[i + 1]);
    if (change == Change::remove) texts.erase(words[i]);
  }
}

Error unexpected(std::string_view command) {
  return Error{Fault::unavailable, "Redis sent an unexpected reply to " + std::string(command)};
}

}  // namespace

// HSCAN returns the fields that exist during the whole scan; our own changes in the meantime are applied at the end.
struct SharedHash::Reading {
  ReadHandler handler;
  std::string version;
  std::string cursor = "0";
  ReadResult result;
  std::vector<std::pair<Change, std::vector<std::string>>> since;
};

SharedHash::SharedHash(Commands& commands, std::string key) : commands_(commands), key_(std::move(key)) {
  std::random_device device;
  random_.seed(std::uint64_t{device()} << 32 | device());
}

void SharedHash::change(Change change, std::vector<std::string> words, Changed done) {
  const std::string token = token_of(random_());
  std::vector<std::string_view> command = {
      "EVALSHA", kSharedHashScript.sha, "1", key_, kModes[static_cast<std::size_t>(change)], token};
  command.insert(command.end(), words.begin(), words.end());
  commands_.ask(
      key_, command,
      [this, change, words = std::move(words), done = std::move(done)](const Result<const resp::Reply*>& reply) {
        if (!reply) return done(reply.error());
        const Values values = (*reply)->values();
        if (values.size() != 4 || !is_text(values[1]) || !is_text(values[2])) return done(unexpected("EVALSHA"));
        // A change by another server in between is found by the next read().
        if (values[1].text == known_ && !stale_) known_ = std::string(values[2].text);
        if (const auto reading = reading_.lock()) reading->since.emplace_back(change, words);
        done(static_cast<std::size_t>(values[3].integer));
      });
}

void SharedHash::read(ReadHandler handler) {
  const std::array<std::string_view, 3> command = {"HGET", key_, kVersion};
  commands_.ask(key_, command, [this, handler = std::move(handler)](const Result<const resp::Reply*>& reply) {
    if (!reply) return handler(reply.error());
    const resp::Reply::Value& root = (*reply)->root();
    if (!is_text(root) && root.type != resp::Type::null) return handler(unexpected("HGET"));
    const std::string_view version = is_text(root) ? root.text : std::string_view{};
    if (version == known_ && !stale_) return handler(ReadResult{});
    const auto reading = std::make_shared<Reading>();
    reading->handler = handler;
    reading->version = std::string(version);
    reading->result.changed = true;
    reading->result.lost = version.empty() || (version != known_ && count_of(version) <= count_of(known_));
    reading_ = reading;
    scan(reading);
  });
}

void SharedHash::scan(const std::shared_ptr<Reading>& reading) {
  static constexpr std::string_view kCount = "100";
  const std::array<std::string_view, 5> command = {"HSCAN", key_, reading->cursor, "COUNT", kCount};
  commands_.ask(key_, command, [this, reading](const Result<const resp::Reply*>& reply) {
    const auto fail = [&](const Error& error) {
      reading_.reset();
      reading->handler(error);
    };
    if (!reply) return fail(reply.error());
    const Values values = (*reply)->values();
    if (!is_aggregate(values.front()) || values.front().count != 2) return fail(unexpected("HSCAN"));
    Elements elements(values);
    const Values cursor = elements.next();
    const Values fields = elements.next();
    if (!is_text(cursor.front()) || !is_aggregate(fields.front())) return fail(unexpected("HSCAN"));
    for (std::size_t i = 1; i + 1 < fields.size(); i += 2) {
      if (!is_text(fields[i]) || !is_text(fields[i + 1])) return fail(unexpected("HSCAN"));
      if (fields[i].text == kVersion) continue;
      reading->result.texts.insert_or_assign(std::string(fields[i].text), std::string(fields[i + 1].text));
      if (reading->result.texts.size() > bounds::shared_fields_max) {
        return fail(Error{Fault::too_large,
                          key_ + " on Redis has more than " + std::to_string(bounds::shared_fields_max) + " fields"});
      }
    }
    reading->cursor = std::string(cursor.front().text);
    if (reading->cursor == "0") return end(reading);
    scan(reading);
  });
}

void SharedHash::end(const std::shared_ptr<Reading>& reading) {
  for (const auto& [change, words] : reading->since) apply(change, words, reading->result.texts);
  known_ = reading->version;
  stale_ = false;
  reading_.reset();
  reading->handler(std::move(reading->result));
}

}  // namespace weir::redis
