// Lists the buckets on Redis page by page: SCAN over every master, ordered by the hash of their addresses; never KEYS.
// Lists and removes only buckets, quotas and callers' own buckets, no other keys under the prefix.
//
// A cursor names the master and its SCAN position. A page that was left in the middle is requested again; keys already
// seen are recognized by hash. A bucket that exists throughout is seen, unless its master fails over or its slot moves
// during the scan; some buckets may be seen twice.
//
// Thread safety: none; it belongs to its store's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/siphash.h"
#include "weir/net/loop.h"
#include "weir/store/bucket_scan.h"
#include "weir/store/redis/redis_store.h"

namespace weir::redis {

// Converts a bucket's key in Redis to the key that other layers use: "weir:b:orders:7" is the bucket orders:7. The
// result is a view into `text` or `room`. Returns nullopt if it is not the key of a bucket. The inverse of append_key()
// in asked.h.
std::optional<Key> key_within(std::string_view text, std::string_view prefix, std::string_view hash_tag,
                              std::string& room);

class RedisBucketScan final : public BucketScan {
 public:
  struct Options {
    std::string key_prefix = "weir:";
    std::string hash_tag;  // empty: none
    HashKey order;         // secret: keeps clients from choosing names whose hashes collide
  };

  // Loop and store must outlive the scan, and the scan must outlive its unfinished calls.
  RedisBucketScan(Loop& loop, RedisStore& store, Options options);

  void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) override;
  void forget(std::string_view cursor, Now now, const Done& done) override;

 private:
  struct Place;
  struct Page;

  void begin(std::string_view cursor, std::shared_ptr<Page> page);
  void scan(const std::shared_ptr<Page>& page);
  void scan_again(const std::shared_ptr<Page>& page, const Error& error, Time until);
  void scanned(const std::shared_ptr<Page>& page, const resp::Reply& reply);
  void read_states(const std::shared_ptr<Page>& page);
  void remove_keys(const std::shared_ptr<Page>& page);
  void answered(const std::shared_ptr<Page>& page);
  void show(const std::shared_ptr<Page>& page);
  void end(const Page& page, bool stopped, std::uint64_t last);

  Loop& loop_;
  RedisStore& store_;
  Options options_;
  std::string pattern_;
};

}  // namespace weir::redis
