// The state of a RESP client, and the commands that only concern its connection: greeting, password, names, server
// information. None of them needs a verdict.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/log.h"
#include "weir/protocol/resp/command_table.h"
#include "weir/wire/resp.h"

namespace weir {

struct RespOptions {
  std::string password;       // empty: not required
  std::string name = "weir";  // the server's name in HELLO and INFO
  std::string version = "0.1.0";
  // Required for WEIR.REFUND, WEIR.RESET and DEL; also accepted for everything else. Empty: `password` is enough.
  std::string write_password{};
  Log* log = nullptr;  // logs bad requests, at debug level
};

class RespClient {
 public:
  // The options must outlive the client. The id distinguishes the connections of one server.
  RespClient(const RespOptions& options, std::uint64_t id) : options_(&options), id_(id) {
    authenticated_ = options.password.empty();
  }

  resp::Version version() const noexcept { return version_; }
  bool authenticated() const noexcept { return authenticated_; }
  // True if the client may refund tokens and reset buckets.
  bool may_write() const noexcept { return writes_ || options_->write_password.empty(); }

  // Answers any command except QUIT and those that need a verdict. REQUIRES: the number of words is right.
  void answer(const CommandRow& row, std::span<const std::string_view> arguments, std::string& out);

 private:
  void hello(std::span<const std::string_view> arguments, std::string& out);
  void greet(resp::ReplyWriter& writer) const;
  void auth(std::span<const std::string_view> arguments, resp::ReplyWriter& writer);
  void client(std::span<const std::string_view> arguments, resp::ReplyWriter& writer);
  void set_name(std::string_view name, std::string_view what, std::string& place, resp::ReplyWriter& writer);
  void set_library(std::string_view what, std::string_view value, resp::ReplyWriter& writer);
  void tell(std::string_view subcommand, resp::ReplyWriter& writer) const;
  void reset(resp::ReplyWriter& writer);
  enum class Access : unsigned char { none, read, write };
  Access access_of(std::string_view user, std::string_view password) const noexcept;
  std::string line() const;
  std::string info() const;

  const RespOptions* options_;
  std::uint64_t id_;
  std::string name_;
  std::string library_;
  std::string library_version_;
  resp::Version version_ = resp::Version::resp2;
  bool authenticated_ = false;
  bool writes_ = false;  // authenticated with the write password
};

}  // namespace weir
