// A real redis-server for a test: started on a free loopback port, ended with the test, its files in a directory of its
// own. WEIR_REDIS_SERVER names another binary, valkey-server for one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/net/socket.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// A blocking client: sends whole commands, waits for whole replies.
class RedisConnection {
 public:
  explicit RedisConnection(std::uint16_t port);

  bool is_open() const noexcept { return static_cast<bool>(socket_); }
  void write(std::string_view bytes);
  // The next reply; valid until the next call.
  const resp::Reply& read();
  // Sends and prints the reply as one line: "OK", "(error) ERR …", "12", "[1, 2]", "(nil)".
  std::string ask(const std::vector<std::string>& arguments);

 private:
  Socket socket_;
  std::string in_;
  std::size_t used_ = 0;
  resp::Reply reply_;
};

class RedisServer {
 public:
  // More arguments of its command line: {"--requirepass", "secret"}; a file of its configuration may be the first.
  explicit RedisServer(std::vector<std::string> arguments = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string ask(const std::vector<std::string>& arguments) { return RedisConnection(port_).ask(arguments); }

  void pause();   // SIGSTOP
  void resume();  // SIGCONT
  void kill();    // SIGKILL
  // Empty, on the same port, and again with the same arguments.
  void start();

 private:
  std::vector<std::string> arguments_;
  std::string directory_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace weir::redis
