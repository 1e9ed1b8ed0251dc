// A hash on Redis that several servers keep alike: fields and their texts, and a version that every change replaces
// (shared_hash.lua), so that an unchanged hash costs one small question.
//
// A version is a number that counts up, '.', and a token that no other change has. One whose number is not above that
// of the version we know, and that is not that very version, is a sign that Redis has lost what we knew: it was
// restarted empty, or a replica took over that had not heard of the last changes.
//
// Thread safety: none; it belongs to the loop of its commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/redis/commands.h"
#include "weir/redis/redis_client.h"

namespace weir::redis {

// The script of stores that have such hashes.
extern const Script kSharedHashScript;

class SharedHash {
 public:
  using Texts = std::map<std::string, std::string>;
  // What the script does with the words behind (shared_hash.lua).
  enum class Change : unsigned char { put, fill, remove, finish };

  // `commands` must outlive it and have loaded kSharedHashScript.
  SharedHash(Commands& commands, std::string key);

  // `done` is told how many fields were changed. Errors: `unavailable`, nothing was; `timeout`, nobody knows.
  using Changed = std::function<void(const Result<std::size_t>& fields)>;
  void change(Change change, std::vector<std::string> words, Changed done);

  // Everything, if it is not known yet. Each asked for when the one before has answered.
  struct News {
    bool any = false;   // false: as it was read last
    bool lost = false;  // what was known before may be missing
    Texts texts;
  };
  using Heard = std::function<void(const Result<News>& news)>;
  void read(Heard heard);
  // The next read() gives everything, whatever is known.
  void doubt() noexcept { doubted_ = true; }

 private:
  struct Reading;

  void scan(const std::shared_ptr<Reading>& reading);
  void end(Reading& reading);

  Commands& commands_;
  std::string key_;
  std::mt19937_64 random_;
  std::string known_;  // the version of what was read or written last; empty: none
  bool doubted_ = true;
  std::shared_ptr<Reading> reading_;  // null: none is on its way
};

}  // namespace weir::redis
