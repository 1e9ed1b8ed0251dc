#include "weir/app/endpoints.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/admin/admin_handler.h"
#include "weir/app/systemd.h"
#include "weir/base/bounds.h"
#include "weir/http/choose_session.h"
#include "weir/http/http_shared.h"
#include "weir/net/tls.h"
#include "weir/protocol/grpc/grpc_handler.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/protocol/http/http_tokens.h"
#include "weir/protocol/resp/resp_session.h"
#include "weir/server/connection.h"

namespace weir::app {
namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Each of these builds what the sessions of one loop share, and returns the function that makes them.

http::HttpShared http_shared(Loop& loop) {
  return http::HttpShared([&loop](std::function<void()> work) { loop.post(std::move(work)); },
                          [&loop] { return loop.reading(); });
}

Sessions admin_sessions(bool loopback, ServerServices& around, Loop& loop) {
  struct Parts {
    Parts(std::shared_ptr<admin::AdminShared> with, Loop& on) : admin(std::move(with)), http(http_shared(on)) {}
    std::shared_ptr<admin::AdminShared> admin;
    http::HttpShared http;
    admin::AdminHandler handler{*admin};
  };
  const auto parts = std::make_shared<Parts>(around.admin(loop), loop);
  parts->admin->loopback = loopback;
  parts->http.log = around.requests;
  return [parts, sessions = http::http_sessions(parts->http, parts->handler)](const NewConnection& connection) {
    return sessions(connection);
  };
}

Sessions resp_sessions(std::size_t index, ServerServices& around, Pipeline& pipeline) {
  auto options = std::make_shared<RespOptions>();
  options->log = around.requests;
  pipeline.on_configuration([options, index](const config::Loaded& now) {
    options->password = now.settings.listen[index].password;
    options->write_password = now.settings.listen[index].write_password;
  });
  return [options, &around](const NewConnection& connection) {
    return std::make_unique<RespSession>(connection.output, *options, around.next_client.fetch_add(1), connection.peer);
  };
}

Sessions check_sessions(std::size_t index, ServerServices& around, Loop& loop, Pipeline& pipeline) {
  // gRPC in front of the decision API, on the same port.
  struct Parts {
    Parts(const Health& health, Loop& on, GrpcCounters& counters)
        : http(http_shared(on)), handler(health), grpc(handler, counters) {}
    http::HttpShared http;
    CheckHandler handler;
    GrpcHandler grpc;
  };
  const auto parts = std::make_shared<Parts>(around.health, loop, pipeline.metrics().grpc);
  parts->http.log = around.requests;
  parts->handler.log = around.requests;
  parts->grpc.is_welcome = [tokens = &parts->handler.tokens](const RequestHead& head) {
    return caller_of(head, *tokens, false) == Caller::welcome;
  };
  parts->grpc.is_serving = [&health = around.health] { return health.ready.load(); };
  pipeline.on_configuration([parts, index](const config::Loaded& now) {
    parts->handler.tokens = {now.settings.listen[index].tokens, now.settings.listen[index].write_token};
    parts->grpc.options = {now.settings.envoy_headers, now.settings.envoy_metadata};
  });
  return [parts, sessions = http::http_sessions(parts->http, parts->grpc)](const NewConnection& connection) {
    NewConnection known = connection;
    // A peer on a UNIX socket is on this machine.
    if (known.peer.empty()) known.peer = "127.0.0.1";
    return sessions(known);
  };
}

Result<std::unique_ptr<TlsServer>> listener_tls(const config::Listener& listener, const ServerServices& around) {
  const auto beside = [&](const std::string& file) { return (std::filesystem::path(around.folder) / file).string(); };
  TlsServer::Options options;
  for (const config::Tls& files : listener.tls) options.certificates.push_back({beside(files.cert), beside(files.key)});
  if (!has(listener.speak, "resp")) {
    options.protocols = {std::string(http::kHttp2Alpn), std::string(http::kHttp1Alpn)};
  }
  const config::Tls& first = listener.tls.front();
  if (!first.client_ca.empty()) options.client_ca = beside(first.client_ca);
  options.require_client = first.require_client;
  options.only_tls13 = first.only_tls13;
  options.log = around.log;
  return TlsServer::make(std::move(options));
}

ConnectionTimes connection_times(const config::Settings& settings, std::size_t index) {
  const config::Listener& listener = settings.listen[index];
  // A proxy listener that sets no idle_timeout has the general default at this point.
  const bool silent = has(listener.speak, "proxy") && listener.idle_timeout == bounds::http_idle_time_max;
  return {silent ? settings.proxy.idle_timeout : listener.idle_timeout, listener.max_connection_age};
}

void make_proxy(const config::Listener& listener, const config::Proxy& settings, ServerServices& around,
                Endpoint& endpoint) {
  endpoint.protocol = Protocol::proxy;
  endpoint.sessions = [&around, settings](Loop& loop, Pipeline& pipeline) {
    return around.proxy->sessions(loop, pipeline, settings);
  };
  if (listener.proxy_protocol) endpoint.proxy_header = [&around](Loop& loop) { return around.proxy->trusts(loop); };
}

Result<Endpoint> make_endpoint(const config::Settings& settings, std::size_t index, ServerServices& around) {
  const config::Listener& listener = settings.listen[index];
  auto address = Address::parse(listener.address);
  if (!address) return address.error();
  Endpoint endpoint;
  endpoint.address = std::move(*address);
  endpoint.times = [index](const config::Loaded& now) { return connection_times(now.settings, index); };
  if (!listener.tls.empty()) {
    auto tls = listener_tls(listener, around);
    if (!tls) return Error{tls.error().fault, "tls on " + listener.address + ": " + tls.error().detail};
    endpoint.tls = std::move(*tls);
  }
  if (has(listener.speak, "proxy")) {
    make_proxy(listener, settings.proxy, around, endpoint);
  } else if (has(listener.speak, "admin")) {
    endpoint.protocol = Protocol::admin;
    const bool loopback = endpoint.address.is_loopback();
    endpoint.sessions = [loopback, &around](Loop& loop, Pipeline&) { return admin_sessions(loopback, around, loop); };
  } else if (has(listener.speak, "resp")) {
    endpoint.protocol = Protocol::resp;
    endpoint.sessions = [&around, index](Loop&, Pipeline& pipeline) { return resp_sessions(index, around, pipeline); };
  } else {
    endpoint.protocol = Protocol::http;
    endpoint.sessions = [&around, index](Loop& loop, Pipeline& pipeline) {
      return check_sessions(index, around, loop, pipeline);
    };
  }
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> make_endpoints(const config::Settings& settings, ServerServices& around) {
  std::vector<Endpoint> all;
  std::vector<std::vector<std::string>> speaks;
  for (const config::Listener& listener : settings.listen) speaks.push_back(listener.speak);
  const std::vector<int> inherited = assign_sockets(inherited_sockets(), speaks);
  for (std::size_t i = 0; i < settings.listen.size(); ++i) {
    auto made = make_endpoint(settings, i, around);
    if (!made) return made.error();
    made->inherited_fd = inherited[i];
    all.push_back(std::move(*made));
  }
  return all;
}

}  // namespace weir::app
