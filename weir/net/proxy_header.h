// The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): the bytes with which a load balancer begins a
// connection to say who its client is. Pure; the listener reads the bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

struct ProxyHeader {
  std::size_t bytes = 0;  // of the header; the connection's own bytes follow
  // The client's address without the port. Empty: the header names none (LOCAL, UNKNOWN, another family), and the
  // socket's address counts.
  std::string client;

  // Parses the header at the start of `bytes`. Returns nullopt while it is incomplete. Fails with `invalid` as soon as
  // the bytes cannot become a header of at most bounds::proxy_header_bytes_max.
  static Result<std::optional<ProxyHeader>> parse(std::string_view bytes);
  // How many bytes may be read next without reading past the header. `bytes` is what was read so far, an incomplete
  // header.
  static std::size_t wanted(std::string_view bytes) noexcept;
};

}  // namespace weir
