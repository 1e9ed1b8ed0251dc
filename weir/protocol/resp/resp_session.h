// The session of a Redis client: RESP2 and RESP3, inline commands, pipelining of any depth, replies in the order of the
// commands. CL.THROTTLE, THROTTLE and DEL use buckets with the caller's own numbers, WEIR.* use configured limits; the
// other commands are what client libraries send when they connect (resp_client.h). docs/resp.md is the page for users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/protocol/resp/command_table.h"
#include "weir/protocol/resp/owed_replies.h"
#include "weir/protocol/resp/resp_client.h"
#include "weir/protocol/resp/transaction.h"
#include "weir/protocol/session.h"
#include "weir/wire/resp.h"

namespace weir {

class RespSession final : public Session {
 public:
  // Output and options must outlive the session. The id distinguishes the connections of one server. `peer` is the
  // peer's address; empty: unknown.
  RespSession(Output& output, const RespOptions& options, std::uint64_t id = 0, std::string_view peer = {})
      : output_(output), client_(options, id), log_(options.log), peer_(peer) {}

  // Also stops when the replies that this call writes itself, or those waiting behind a pending answer, reach
  // bounds::session_held_bytes_max: call it again when the output is written and answers have arrived. A framing error
  // returns an Error if no answer is pending; otherwise the error reply follows the last pending answer, and the
  // session finishes.
  Result<std::size_t> receive(std::string_view bytes, Queries& queries, Now now) override;
  void reply(std::uint64_t token, const Result<Answer>& answer) override;
  bool reading() const noexcept override { return owed_.after_bytes() < bounds::session_held_bytes_max; }
  bool finished() const noexcept override { return ending_ && owed_.empty(); }
  bool busy() const noexcept override { return !owed_.empty(); }
  void drain(Time now) override;

 private:
  using Words = std::span<const std::string_view>;

  bool accept(const CommandRow* row, Words words, std::string& out);
  void queue(CommandId id, std::string_view command, std::string& out);
  bool execute(std::size_t already, Queries& queries, std::string& out);
  void control_transaction(CommandId id, std::string& out);
  bool must_pause(std::size_t already, const std::string& out) const noexcept;
  void run(const CommandRow& row, const resp::Request& request, Queries& queries, std::string& out);
  void ask_bucket(ReplyForm form, const resp::Request& request, Queries& queries, std::string& out);
  void ask_limit(Mode mode, ReplyForm form, const resp::Request& request, Queries& queries, std::string& out);
  void ask_forget(const resp::Request& request, Queries& queries, std::string& out);
  std::string_view kept(std::string_view view, const resp::Request& request, Queries& queries) const;
  void refuse(std::string_view text, std::string& out);
  Result<std::size_t> lose(std::string_view problem, std::size_t size, std::string& out);

  Output& output_;
  RespClient client_;
  Log* log_;
  std::string peer_;
  OwedReplies owed_;
  Transaction transaction_;
  bool ending_ = false;
};

}  // namespace weir
