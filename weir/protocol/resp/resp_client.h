// What a RESP connection knows of its client, and the commands that only concern the two: greeting, password, names,
// what server this is. None of them needs a verdict.
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
  std::string password;       // empty: nobody needs one
  std::string name = "weir";  // what HELLO and INFO call the server
  std::string version = "0.1.0";
  // Of WEIR.REFUND, WEIR.RESET and DEL, and good for everything else; empty: they need no other.
  std::string write_password{};
  Log* log = nullptr;  // gets bad requests, at debug
};

class RespClient {
 public:
  // The options outlive the client. The id tells connections of one server apart.
  RespClient(const RespOptions& options, std::uint64_t id) : options_(&options), id_(id) {
    authenticated_ = options.password.empty();
  }

  resp::Version version() const noexcept { return version_; }
  bool authenticated() const noexcept { return authenticated_; }
  // May give tokens back and forget buckets.
  bool may_write() const noexcept { return writes_ || options_->write_password.empty(); }

  // Any command but those that ask for a verdict, and QUIT. The number of words is right.
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
  bool writes_ = false;  // gave the write password
};

}  // namespace weir
