#include "weir/app/redis_hash_key.h"

#include <array>
#include <chrono>
#include <string_view>

#include "weir/app/random.h"
#include "weir/redis/redis_client.h"

namespace weir::redis {

extern const Script kHashKeyScript;  // hash_key.lua

}  // namespace weir::redis

namespace weir::app {
namespace {

constexpr std::size_t kKeyBytes = 32;
// Characters of a key: as many as we write, or a longer one that an operator set.
constexpr std::string_view kKeyMin = "64";
constexpr std::string_view kKeyMax = "1024";
static_assert(2 * kKeyBytes == 64);

constexpr Duration kRetryEvery = std::chrono::milliseconds{2};

Error unavailable() {
  return {Fault::unavailable, "Redis cannot be asked for the key of hashed limits"};
}

}  // namespace

void RedisHashKey::ask(const std::string& known, Time until, const Done& done) {
  if (commands_.is_up()) return load(known, done);
  const Time now = loop_.now().time;
  if (now >= until) return done(unavailable());
  loop_.at(now + kRetryEvery, [this, known, until, done] { ask(known, until, done); });
}

// The store loads another script by itself.
void RedisHashKey::load(const std::string& known, const Done& done) {
  const Result<std::string> fresh = random_bytes(kKeyBytes);
  if (!fresh) return done(fresh.error());
  const std::string offered = known.empty() ? hexadecimal(*fresh) : known;
  const std::array<std::string_view, 3> command = {"SCRIPT", "LOAD", redis::kHashKeyScript.text};
  commands_.ask(name_, command, [this, offered, done](const Result<const resp::Reply*>& reply) {
    if (!reply) return done(unavailable());
    evaluate(offered, done);
  });
}

void RedisHashKey::evaluate(const std::string& offered, const Done& done) {
  const std::array<std::string_view, 7> command = {"EVALSHA", redis::kHashKeyScript.sha, "1", name_, offered, kKeyMin,
                                                   kKeyMax};
  commands_.ask(name_, command, [done](const Result<const resp::Reply*>& reply) {
    if (!reply || (*reply)->values().size() != 3) return done(unavailable());
    done(Found{std::string((*reply)->values()[1].text), (*reply)->values()[2].integer != 0});
  });
}

}  // namespace weir::app
