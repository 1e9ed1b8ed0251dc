// A client's side of one connection to Redis, without the connection: commands in, bytes out; bytes in, replies out.
//
//   open()      the connection stands: the handshake is queued; ready() once Redis has agreed to all of it
//   send()      queues a command under a tag; everything queued goes out as one piece, unwritten()
//   receive()   replies, in the order of the commands, each handed to Replies under its tag
//   expire()    commands whose time is over are given up; their replies are dropped when they come
//   seal()      what was written so far is answered once enough replicas have it, or that takes too long; what is sent
//               meanwhile goes out behind that, as one piece
//   close()     the connection is gone: everything without a reply is lost, and it is known which of it Redis never saw
//
// A script that Redis has forgotten is loaded and asked again without anybody noticing. Every tag ends exactly once.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// Names one command until it ends; whoever sends it gives it a meaning.
using Tag = std::uint64_t;

// A script and the name that EVALSHA knows it by.
struct Script {
  std::string_view text{};
  std::string_view sha{};  // 40 hexadecimal digits
};

// What a command does on Redis: replicas have nothing to confirm of one that only reads.
enum class Effect : unsigned char { writes, reads };

// How a command ended without a reply.
enum class Lost : unsigned char {
  unsent,   // Redis cannot have seen it whole: it was not applied and may be sent again
  unknown,  // it may have been applied: it is not sent again
  late,     // no reply in time; it may have been applied
};

class RedisClient {
 public:
  class Replies {
   public:
    virtual ~Replies() = default;
    // `reply` and command() are valid until it returns. May send(), must not close() or destroy the client.
    virtual void replied(Tag tag, const resp::Reply& reply) = 0;
    virtual void lost(Tag tag, Lost how) = 0;
    // Fewer replicas than wanted have what was answered just now: decisions stand.
    virtual void unreplicated() {}
    // The server spoke unasked.
    virtual void pushed(const resp::Reply& push) { (void)push; }
  };

  struct Options {
    std::string username{};  // empty: the default user
    std::string password{};  // empty: none
    std::int64_t db = 0;
    std::string name = "weir";       // as CLIENT LIST shows it
    Script script{};                 // loaded at connect; text empty: none. The views must outlive the client.
    std::int64_t wait_replicas = 0;  // 0: seal() does nothing
    std::string channel{};  // subscribed to at connect, where RESP3 lets other commands pass beside; empty: none
  };

  // `replies` must outlive the client.
  RedisClient(Options options, Replies& replies) : options_(std::move(options)), replies_(replies) {}

  // REQUIRES: new, or closed.
  void open();
  // The handshake is over. Before, send() refuses.
  bool is_ready() const noexcept { return stage_ == Stage::ready; }
  // Of the handshake: "noeviction", or empty where Redis does not tell.
  std::string_view maxmemory_policy() const noexcept { return maxmemory_policy_; }

  // False: not ready, or too much waits already; then nothing was queued. `deadline` is when to give up.
  bool send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect = Effect::writes);
  // The same for a command already encoded (another client's command()), perhaps behind an ASKING.
  bool send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking = false);

  // Replies to what writes and was sent since the last time are held until the replicas have it, or `patience` is over,
  // or half of what is left until the first deadline; no patience: they are not held. Once for everything that is
  // written together: it holds up the connection, so there is never more than one.
  void seal(Time now, Duration patience);

  // What is to be written next, and how much of it was.
  std::string_view unwritten() const noexcept {
    return std::string_view(bytes_).substr(0, sealed_ == 0 ? bytes_.size() : sealed_).substr(written_);
  }
  void wrote(std::size_t bytes) noexcept;

  // An Error: what comes makes no sense, or the handshake was refused; close the connection.
  Result<void> receive(std::string_view bytes);

  // When to call expire(); Time::max(): nothing waits.
  Time deadline() const noexcept;
  void expire(Time now);

  // `unwritten_bytes`: how much of what wrote() was told of never left after all.
  void close(std::size_t unwritten_bytes = 0);

  // Within replied() and lost(): the bytes of the command that it is about, until something is sent on this client.
  std::string_view command() const noexcept { return std::string_view(bytes_).substr(command_at_, command_size_); }
  std::size_t unanswered() const noexcept { return entries_.size(); }
  // Buckets of all commands ever sent, and of those that Redis answered or that were lost with a connection. A script
  // counts its keys, any other command one.
  std::uint64_t buckets_sent() const noexcept { return buckets_sent_; }
  std::uint64_t buckets_landed() const noexcept { return buckets_landed_; }

 private:
  enum class Stage : unsigned char { closed, greeting, agreeing, ready };
  enum class Purpose : unsigned char { asked, asking, greet, name, login, choose, load, survey, subscribe, wait };

  struct Entry {
    Tag tag = 0;
    std::size_t size = 0;  // bytes
    Time deadline{};
    Purpose purpose = Purpose::asked;
    bool asking = false;  // behind an ASKING
    bool given_up = false;
    bool again = false;  // sent a second time
    bool early = false;  // its deadline lies before that of one ahead of it
    bool reads = false;
    std::uint16_t buckets = 0;
  };

  struct Held {
    Tag tag;
    std::size_t size;  // bytes
  };

  void push(Purpose purpose, std::span<const std::string_view> arguments);
  void push(Entry entry);
  bool has_room(std::size_t bytes) const noexcept;
  Result<void> take(std::string_view text);
  Result<void> agree(Purpose purpose);
  Result<void> greeted();
  void agree_on_rest(bool hello);
  void survey();
  bool confirms_channel() const noexcept;
  void load_and_repeat(Entry entry);
  void drop_front();
  void deliver_held();
  static bool is_asked(const Entry& entry) noexcept {
    return entry.purpose == Purpose::asked || entry.purpose == Purpose::wait;
  }
  void lose(const Entry& entry, std::size_t at, Lost how);

  Options options_;
  Replies& replies_;
  Stage stage_ = Stage::closed;
  // Commands without a reply, in the order written, and their bytes: bytes_ from head_ on. Written up to written_.
  std::deque<Entry> entries_;
  std::string bytes_;
  std::size_t head_ = 0;
  std::size_t written_ = 0;
  std::size_t early_ = 0;  // entries
  std::uint64_t buckets_sent_ = 0;
  std::uint64_t buckets_landed_ = 0;
  Time latest_deadline_{};    // of those sent so far
  std::size_t to_agree_ = 0;  // replies of the handshake still to come
  std::string in_;            // the beginning of a reply
  resp::Reply reply_;
  std::size_t command_at_ = 0;
  std::size_t command_size_ = 0;
  std::string maxmemory_policy_;
  // Replies that wait for the replicas, and their bytes.
  std::deque<Held> held_;
  std::string held_bytes_;
  std::size_t sealed_ = 0;      // where the WAIT that has no reply ends in bytes_; 0: there is none
  Time seal_by_ = Time::max();  // the first deadline of what writes and is not sealed; Time::max(): there is nothing
};

}  // namespace weir::redis
