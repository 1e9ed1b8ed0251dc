// A hash on Redis that several servers share: fields with text values, and a version that every change replaces
// (shared_hash.lua), so that checking an unchanged hash costs one small command.
//
// A version is a counter, '.', and a token that is unique to the change. A different version whose counter is not above
// the known one shows that Redis has lost data: it was restarted empty, or a replica took over that did not have the
// last changes.
//
// Thread safety: none; use it on the loop of its commands.
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

// The script that changes such a hash.
extern const Script kSharedHashScript;

class SharedHash {
 public:
  using Texts = std::map<std::string, std::string>;
  // The mode of the script (shared_hash.lua), which defines its arguments.
  enum class Change : unsigned char { put, fill, remove, finish };

  // `commands` must outlive it and must have loaded kSharedHashScript.
  SharedHash(Commands& commands, std::string key);

  // Calls `done` with the number of changed fields. Errors: `unavailable`, nothing was changed; `timeout`, it may have
  // been.
  using Changed = std::function<void(const Result<std::size_t>& fields)>;
  void change(Change change, std::vector<std::string> words, Changed done);

  // Reads the whole hash if its version has changed. Start a read only after the previous one has finished.
  struct ReadResult {
    bool changed = false;  // false: the same as the last time
    bool lost = false;     // Redis may have lost fields that were known
    Texts texts;
  };
  using ReadHandler = std::function<void(const Result<ReadResult>& result)>;
  void read(ReadHandler handler);
  // Makes the next read() return everything, whatever the version.
  void invalidate() noexcept { stale_ = true; }

 private:
  struct Reading;

  void scan(const std::shared_ptr<Reading>& reading);
  void end(const std::shared_ptr<Reading>& reading);

  Commands& commands_;
  std::string key_;
  std::mt19937_64 random_;
  std::string known_;  // the version last read or written; empty: none
  bool stale_ = true;
  // Expired: no read is running. Owned by its command alone: a handler may own what owns this hash.
  std::weak_ptr<Reading> reading_;
};

}  // namespace weir::redis
