#include "weir/cli/endpoints.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/admin/admin_session.h"
#include "weir/cli/systemd.h"
#include "weir/net/tls.h"
#include "weir/protocol/resp/resp_session.h"

namespace weir::cli {
namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Each of these makes, for one loop, what its sessions share, and then the sessions.

Sessions admin_sessions(bool loopback, Surroundings& around, Loop& loop) {
  const std::shared_ptr<admin::Front> front = around.admin(loop);
  front->loopback = loopback;
  return [front](std::string_view peer) { return std::make_unique<AdminSession>(*front, peer); };
}

Sessions resp_sessions(const std::string& password, Surroundings& around) {
  auto options = std::make_shared<RespOptions>();
  options->password = password;
  return [options, &around](std::string_view) {
    return std::make_unique<RespSession>(*options, around.next_client.fetch_add(1));
  };
}

Sessions http_sessions(Surroundings& around) {
  auto front = std::make_shared<HttpFront>(around.health, around.http);
  // Whoever reaches a UNIX socket is on this machine.
  return [front](std::string_view peer) {
    return std::make_unique<HttpSession>(*front, peer.empty() ? "127.0.0.1" : peer);
  };
}

Result<std::unique_ptr<TlsServer>> listener_tls(const policy::Listener& listener, const Surroundings& around) {
  const auto beside = [&](const std::string& file) { return (std::filesystem::path(around.folder) / file).string(); };
  TlsServer::Options options;
  for (const policy::Tls& files : listener.tls) options.certificates.push_back({beside(files.cert), beside(files.key)});
  if (!has(listener.speak, "resp")) options.protocols = {"http/1.1"};
  options.log = around.log;
  return TlsServer::make(std::move(options));
}

Result<Endpoint> make_endpoint(const policy::Listener& listener, Surroundings& around) {
  auto address = Address::parse(listener.address);
  if (!address) return address.error();
  Endpoint endpoint;
  endpoint.address = std::move(*address);
  if (!listener.tls.empty()) {
    auto tls = listener_tls(listener, around);
    if (!tls) return Error{tls.error().fault, "tls on " + listener.address + ": " + tls.error().detail};
    endpoint.tls = std::move(*tls);
  }
  if (has(listener.speak, "admin")) {
    endpoint.speak = Speak::admin;
    const bool loopback = endpoint.address.is_loopback();
    endpoint.sessions = [loopback, &around](Loop& loop) { return admin_sessions(loopback, around, loop); };
  } else if (has(listener.speak, "resp")) {
    endpoint.speak = Speak::resp;
    endpoint.sessions = [&around, password = listener.password](Loop&) { return resp_sessions(password, around); };
  } else {
    endpoint.speak = Speak::http;
    endpoint.sessions = [&around](Loop&) { return http_sessions(around); };
  }
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> make_endpoints(const policy::Settings& settings, Surroundings& around) {
  std::vector<Endpoint> all;
  const int inherited = inherited_sockets();
  for (const policy::Listener& listener : settings.listen) {
    auto made = make_endpoint(listener, around);
    if (!made) return made.error();
    if (static_cast<int>(all.size()) < inherited) made->inherited_fd = kFirstInherited + static_cast<int>(all.size());
    all.push_back(std::move(*made));
  }
  return all;
}

HttpOptions http_options(const policy::Settings& settings) {
  const policy::Headers& headers = settings.headers;
  return {{has(headers.ratelimit, "x-ratelimit"), has(headers.ratelimit, "ietf"), headers.reset == "epoch"},
          settings.failure_code};
}

}  // namespace weir::cli
