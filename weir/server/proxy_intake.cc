#include "weir/server/proxy_intake.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/net/proxy_header.h"

namespace weir {

ProxyIntake::ProxyIntake(Loop& loop, Events events) : loop_(loop), events_(std::move(events)) {}

ProxyIntake::~ProxyIntake() {
  while (!pending_.empty()) take(*pending_.begin()->second);
}

void ProxyIntake::add(Accepted accepted) {
  if (!events_.trusts(accepted.peer) || pending_.size() >= bounds::proxy_headers_pending_max) {
    return events_.refused();  // closes it
  }
  const int fd = accepted.socket.fd();
  auto made = std::make_unique<Pending>(*this, std::move(accepted));
  Pending& one = *made;
  if (!loop_.watch(fd, EPOLLIN, one)) return events_.refused();
  pending_.emplace(fd, std::move(made));
  one.timer = loop_.at(loop_.now().time + bounds::proxy_header_time_max, [this, fd] {
    const auto late = pending_.find(fd);
    if (late == pending_.end()) return;
    late->second->timer = 0;
    refuse(*late->second);
  });
  read(one);  // it is usually there already
}

void ProxyIntake::read(Pending& one) {
  std::array<char, 512> buffer;
  for (;;) {
    const std::size_t wanted = std::min(buffer.size(), ProxyHeader::wanted(one.bytes));
    const ssize_t got = one.accepted.socket.receive(std::span(buffer.data(), wanted));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return refuse(one);
    one.bytes.append(buffer.data(), static_cast<std::size_t>(got));
    const Result<std::optional<ProxyHeader>> header = ProxyHeader::parse(one.bytes);
    if (!header) return refuse(one);
    if (!*header) continue;
    Accepted accepted = take(one);
    if (!(*header)->client.empty()) accepted.peer = (*header)->client;
    return events_.accept(std::move(accepted));
  }
}

void ProxyIntake::refuse(Pending& one) {
  take(one);
  events_.refused();
}

Accepted ProxyIntake::take(Pending& one) {
  const auto found = pending_.find(one.accepted.socket.fd());
  const std::unique_ptr<Pending> owned = std::move(found->second);
  pending_.erase(found);
  loop_.forget(owned->accepted.socket.fd(), *owned);
  if (owned->timer != 0) loop_.cancel(owned->timer);
  return std::move(owned->accepted);
}

}  // namespace weir
