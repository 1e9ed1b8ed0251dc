#include "weir/proxy/proxy_handler.h"

#include <cstddef>
#include <memory>
#include <string>

#include "weir/base/ascii.h"
#include "weir/proxy/relay.h"
#include "weir/proxy/reply.h"
#include "weir/wire/http1.h"

namespace weir::proxy {

void ProxyHandler::begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) {
  auto relay = std::make_unique<Relay>(loop_, exchange);
  Relay& attached = *relay;
  exchange.attach(std::move(relay));
  attached.begin(head, first);
}

void ProxyHandler::refused(http::Exchange& exchange, const HttpProblem& problem) {
  const Destinations& destinations = *loop_.destinations;
  const std::string id = loop_.make_request_id();
  std::string lines = destinations.error_lines();
  write_field("X-Request-Id", id, lines);
  // What the client accepts is not known.
  const std::size_t content = respond(exchange, reply_to(problem), {}, lines);
  loop_.metrics.bytes_out.add(content);
  destinations.no_route().responded(problem.status);
  if (!loop_.gateway.access_log.enabled()) return;
  AccessLine line;
  line.time = exchange.now().wall;
  line.client = exchange.peer();
  line.status = problem.status;
  line.bytes_out = content;
  line.request_id = id;
  line.decision = "refused";
  loop_.gateway.access_log.write(line);
}

// splitmix64: ids are unique, not secret.
std::uint64_t ProxyLoop::next_random() noexcept {
  std::uint64_t z = (random_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::string ProxyLoop::make_request_id() {
  std::string id;
  id.reserve(32);
  for (const std::uint64_t word : {next_random(), next_random()}) {
    for (int shift = 56; shift >= 0; shift -= 8) append_hex(static_cast<unsigned char>(word >> shift), id);
  }
  return id;
}

}  // namespace weir::proxy
