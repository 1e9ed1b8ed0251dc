#include "weir/store/testing/redis_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "weir/base/assert.h"

namespace weir::redis {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Free now; somebody else may take it before Redis does, and then the test fails loudly.
std::uint16_t free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  WEIR_ASSERT(bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  WEIR_ASSERT(getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

std::string print(std::span<const resp::Reply::Value> values) {
  const resp::Reply::Value& value = values.front();
  switch (value.type) {
    case resp::Type::integer:
    case resp::Type::boolean:
      return std::to_string(value.integer);
    case resp::Type::error:
      return "(error) " + std::string(value.text);
    case resp::Type::null:
      return "(nil)";
    case resp::Type::array:
    case resp::Type::set:
    case resp::Type::map:
    case resp::Type::push:
      break;
    default:
      return std::string(value.text);
  }
  std::string out = "[";
  for (std::size_t at = 1; at < value.skip; at += values[at].skip) {
    if (at > 1) out += ", ";
    out += print(values.subspan(at));
  }
  return out + "]";
}

}  // namespace

RedisConnection::RedisConnection(std::uint16_t port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  const int one = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  socket_ = std::move(socket);
}

void RedisConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    WEIR_ASSERT(sent > 0);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

const resp::Reply& RedisConnection::read() {
  in_.erase(0, used_);
  used_ = 0;
  for (;;) {
    const resp::Parsed parsed = reply_.parse(in_);
    WEIR_ASSERT(parsed != resp::Parsed::broken);
    if (parsed == resp::Parsed::done) break;
    char buffer[64 << 10];
    const ssize_t got = recv(socket_.fd(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    WEIR_ASSERT(got > 0);
    in_.append(buffer, static_cast<std::size_t>(got));
  }
  used_ = reply_.size();
  return reply_;
}

std::string RedisConnection::ask(const std::vector<std::string>& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  std::string bytes;
  resp::write_command(views, bytes);
  write(bytes);
  return print(read().values());
}

RedisServer::RedisServer(std::vector<std::string> arguments) : arguments_(std::move(arguments)), port_(free_port()) {
  std::string pattern = (std::filesystem::temp_directory_path() / "weir-redis-XXXXXX").string();
  WEIR_ASSERT(mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
  start();
}

RedisServer::~RedisServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void RedisServer::start() {
  const char* const named = std::getenv("WEIR_REDIS_SERVER");
  std::vector<std::string> words = {named != nullptr ? named : "redis-server",
                                    "--port",
                                    std::to_string(port_),
                                    "--bind",
                                    "127.0.0.1",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--dir",
                                    directory_,
                                    "--logfile",
                                    directory_ + "/log"};
  // A file comes before everything else.
  const bool has_file = !arguments_.empty() && !arguments_.front().starts_with("--");
  if (has_file) words.insert(words.begin() + 1, arguments_.front());
  words.insert(words.end(), arguments_.begin() + (has_file ? 1 : 0), arguments_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    execvp(argv[0], argv.data());
    _exit(127);
  }
  WEIR_ASSERT(pid_ > 0);
  for (;;) {
    if (RedisConnection(port_).is_open()) return;
    WEIR_ASSERT(waitpid(pid_, nullptr, WNOHANG) == 0);  // it ended: not installed, or the port was taken
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
}

void RedisServer::pause() {
  ::kill(pid_, SIGSTOP);
}

void RedisServer::resume() {
  ::kill(pid_, SIGCONT);
}

void RedisServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace weir::redis
