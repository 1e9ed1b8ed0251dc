// The client's side of one Redis connection, without I/O: commands in, bytes out; bytes in, replies out.
//
//   open()      queues the handshake; is_ready() once Redis has accepted all of it
//   send()      queues a command under a tag; everything queued goes out as one piece, unwritten()
//   receive()   parses replies, in the order of the commands, and passes each to Replies under its tag
//   expire()    gives up commands whose deadline has passed; their replies are dropped when they arrive
//   add_wait()  holds replies until enough replicas confirm the writes so far or a timeout passes; commands sent
//               meanwhile go out after that, as one piece
//   close()     the connection is gone: reports every command without a reply as lost, and whether Redis may have
//               received it
//
// If Redis no longer has the script, the client loads it and repeats the command, invisibly to the caller. Every tag
// ends exactly once.
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

// Identifies one command until it ends. The sender chooses it.
using Tag = std::uint64_t;

// A script and its SHA-1 for EVALSHA.
struct Script {
  std::string_view text{};
  std::string_view sha{};  // 40 hexadecimal digits
};

// Whether a command writes: replicas have nothing to confirm for one that only reads.
enum class Effect : unsigned char { writes, reads };

// Why a command got no reply.
enum class Lost : unsigned char {
  unsent,   // Redis has not received all of it: not applied, may be sent again
  unknown,  // may have been applied: not sent again
  late,     // no reply before the deadline; may have been applied
};

class RedisClient {
 public:
  class Replies {
   public:
    virtual ~Replies() = default;
    // `reply` and command() are valid during the call. May send(); must not close() or destroy the client.
    virtual void replied(Tag tag, const resp::Reply& reply) = 0;
    virtual void lost(Tag tag, Lost how) = 0;
    // Fewer replicas than configured confirmed the writes that were just answered. Their decisions stand.
    virtual void unreplicated() {}
    // The server sent a push message.
    virtual void pushed(const resp::Reply& push) { (void)push; }
  };

  struct Options {
    std::string username{};  // empty: the default user
    std::string password{};  // empty: none
    std::int64_t db = 0;
    std::string name = "weir";       // as CLIENT LIST shows it
    Script script{};                 // loaded by the handshake; text empty: none. The views must outlive the client.
    std::int64_t wait_replicas = 0;  // 0: add_wait() does nothing
    std::string channel{};           // subscribed to by the handshake, with RESP3 only; empty: none
  };

  // `replies` must outlive the client.
  RedisClient(Options options, Replies& replies) : options_(std::move(options)), replies_(replies) {}

  // REQUIRES: new, or closed.
  void open();
  // True once the handshake is done. send() fails before that.
  bool is_ready() const noexcept { return stage_ == Stage::ready; }
  // Redis's eviction policy ("noeviction"), read in the handshake; empty if Redis does not report it.
  std::string_view maxmemory_policy() const noexcept { return maxmemory_policy_; }

  // Queues a command. Returns false, and queues nothing, if the client is not ready or its queue is full. `deadline` is
  // when to give up.
  bool send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect = Effect::writes);
  // The same for an encoded command (another client's command()), optionally preceded by ASKING.
  bool send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking = false);

  // Appends a WAIT for the writes sent since the last one: holds their replies until the replicas confirm them, or
  // `patience` or half of the time to the first deadline has passed. Does nothing if `patience` is zero. Call it once
  // per batch: WAIT blocks the connection, so at most one is in flight.
  void add_wait(Time now, Duration patience);

  // The bytes to write next. Report with wrote() how many were written.
  std::string_view unwritten() const noexcept {
    return std::string_view(bytes_).substr(0, wait_end_ == 0 ? bytes_.size() : wait_end_).substr(written_);
  }
  void wrote(std::size_t bytes) noexcept;

  // Returns an Error if the reply is invalid or the handshake was refused; close the connection then.
  Result<void> receive(std::string_view bytes);

  // Returns when to call expire(); Time::max() if nothing is waiting.
  Time deadline() const noexcept;
  void expire(Time now);

  // `unwritten_bytes` is how many of the bytes reported to wrote() were not sent after all.
  void close(std::size_t unwritten_bytes = 0);

  // During replied() and lost(): the bytes of that command. Valid until something is sent on this client.
  std::string_view command() const noexcept { return std::string_view(bytes_).substr(command_at_, command_size_); }
  std::size_t unanswered() const noexcept { return pending_.size(); }
  // Buckets of all commands sent so far, and of those that were answered or lost with a connection. A script counts its
  // keys, any other command counts one.
  std::uint64_t buckets_sent() const noexcept { return buckets_sent_; }
  std::uint64_t buckets_answered() const noexcept { return buckets_answered_; }

 private:
  enum class Stage : unsigned char { closed, hello, handshake, ready };
  enum class Purpose : unsigned char { command, asking, hello, set_name, auth, select, load, info, subscribe, wait };

  struct PendingCommand {
    Tag tag = 0;
    std::size_t size = 0;  // bytes
    Time deadline{};
    Purpose purpose = Purpose::command;
    bool asking = false;  // preceded by ASKING
    bool given_up = false;
    bool repeated = false;  // sent a second time
    bool early = false;     // its deadline is before that of an earlier command
    bool reads = false;
    std::uint16_t buckets = 0;
  };

  struct HeldReply {
    Tag tag;
    std::size_t size;  // bytes
  };

  void push(Purpose purpose, std::span<const std::string_view> arguments);
  void push(PendingCommand pending);
  bool logs_in() const noexcept;
  bool has_room(std::size_t bytes) const noexcept;
  Result<void> take_reply(std::string_view text);
  Result<void> take_handshake_reply(Purpose purpose);
  Result<void> take_hello_reply();
  void continue_handshake(bool resp3);
  void read_maxmemory_policy();
  bool confirms_subscription() const noexcept;
  void load_and_repeat(PendingCommand pending);
  void drop_front();
  void deliver_held();
  static bool has_deadline(const PendingCommand& pending) noexcept {
    return pending.purpose == Purpose::command || pending.purpose == Purpose::wait;
  }
  void report_lost(const PendingCommand& pending, std::size_t at, Lost how);

  Options options_;
  Replies& replies_;
  Stage stage_ = Stage::closed;
  // Commands without a reply, in the order sent. Their bytes start at bytes_[head_]; bytes before written_ are written.
  std::deque<PendingCommand> pending_;
  std::string bytes_;
  std::size_t head_ = 0;
  std::size_t written_ = 0;
  std::size_t early_ = 0;  // commands with `early`
  std::uint64_t buckets_sent_ = 0;
  std::uint64_t buckets_answered_ = 0;
  Time latest_deadline_{};          // of those sent so far
  std::size_t handshake_left_ = 0;  // replies of the handshake still to come
  std::string in_;                  // an incomplete reply
  resp::Reply reply_;
  std::size_t command_at_ = 0;
  std::size_t command_size_ = 0;
  std::string maxmemory_policy_;
  // Replies that wait for a WAIT, and their bytes.
  std::deque<HeldReply> held_;
  std::string held_bytes_;
  std::size_t wait_end_ = 0;    // where the WAIT in flight ends in bytes_; 0: there is none
  Time wait_by_ = Time::max();  // the first deadline of a write without a WAIT; Time::max(): there is none
};

}  // namespace weir::redis
