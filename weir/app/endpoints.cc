#include "weir/app/endpoints.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/admin/admin_session.h"
#include "weir/app/systemd.h"
#include "weir/net/tls.h"
#include "weir/protocol/resp/resp_session.h"

namespace weir::app {
namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Each of these makes, for one loop, what its sessions share, and then the sessions.

Sessions admin_sessions(bool loopback, ServerServices& around, Loop& loop) {
  const std::shared_ptr<admin::AdminShared> shared = around.admin(loop);
  shared->loopback = loopback;
  return [shared](std::string_view peer) { return std::make_unique<AdminSession>(*shared, peer); };
}

Sessions resp_sessions(std::size_t index, ServerServices& around, Pipeline& pipeline) {
  auto options = std::make_shared<RespOptions>();
  options->log = around.requests;
  pipeline.on_configuration([options, index](const config::Loaded& now) {
    options->password = now.settings.listen[index].password;
    options->write_password = now.settings.listen[index].write_password;
  });
  return [options, &around](std::string_view peer) {
    return std::make_unique<RespSession>(*options, around.next_client.fetch_add(1), peer);
  };
}

Sessions http_sessions(std::size_t index, ServerServices& around, Pipeline& pipeline) {
  auto shared = std::make_shared<HttpShared>(around.health);
  shared->log = around.requests;
  pipeline.on_configuration([shared, index](const config::Loaded& now) {
    shared->tokens = {now.settings.listen[index].tokens, now.settings.listen[index].write_token};
  });
  // A peer on a UNIX socket is on this machine.
  return [shared](std::string_view peer) {
    return std::make_unique<HttpSession>(*shared, peer.empty() ? "127.0.0.1" : peer);
  };
}

Result<std::unique_ptr<TlsServer>> listener_tls(const config::Listener& listener, const ServerServices& around) {
  const auto beside = [&](const std::string& file) { return (std::filesystem::path(around.folder) / file).string(); };
  TlsServer::Options options;
  for (const config::Tls& files : listener.tls) options.certificates.push_back({beside(files.cert), beside(files.key)});
  if (!has(listener.speak, "resp")) options.protocols = {"http/1.1"};
  const config::Tls& first = listener.tls.front();
  if (!first.client_ca.empty()) options.client_ca = beside(first.client_ca);
  options.require_client = first.require_client;
  options.only_tls13 = first.only_tls13;
  options.log = around.log;
  return TlsServer::make(std::move(options));
}

Result<Endpoint> make_endpoint(const config::Listener& listener, std::size_t index, ServerServices& around) {
  auto address = Address::parse(listener.address);
  if (!address) return address.error();
  Endpoint endpoint;
  endpoint.address = std::move(*address);
  endpoint.idle_timeout = listener.idle_timeout;
  if (!listener.tls.empty()) {
    auto tls = listener_tls(listener, around);
    if (!tls) return Error{tls.error().fault, "tls on " + listener.address + ": " + tls.error().detail};
    endpoint.tls = std::move(*tls);
  }
  if (has(listener.speak, "admin")) {
    endpoint.protocol = Protocol::admin;
    const bool loopback = endpoint.address.is_loopback();
    endpoint.sessions = [loopback, &around](Loop& loop, Pipeline&) { return admin_sessions(loopback, around, loop); };
  } else if (has(listener.speak, "resp")) {
    endpoint.protocol = Protocol::resp;
    endpoint.sessions = [&around, index](Loop&, Pipeline& pipeline) { return resp_sessions(index, around, pipeline); };
  } else {
    endpoint.protocol = Protocol::http;
    endpoint.sessions = [&around, index](Loop&, Pipeline& pipeline) { return http_sessions(index, around, pipeline); };
  }
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> make_endpoints(const config::Settings& settings, ServerServices& around) {
  std::vector<std::string> protocols;
  for (const config::Listener& listener : settings.listen) {
    const std::string& first = listener.speak.front();
    protocols.push_back(first == "grpc" ? "http" : first);  // one port serves both
  }
  const std::vector<int> inherited = match_sockets(inherited_sockets(), protocols);
  std::vector<Endpoint> all;
  for (const config::Listener& listener : settings.listen) {
    auto made = make_endpoint(listener, all.size(), around);
    if (!made) return made.error();
    made->inherited_fd = inherited[all.size()];
    all.push_back(std::move(*made));
  }
  return all;
}

}  // namespace weir::app
