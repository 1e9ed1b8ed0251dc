// The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): the header that a load balancer sends at the
// start of a connection to name its client. Pure; the listener reads the bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

struct ProxyHeader {
  std::size_t bytes = 0;  // size of the header; the connection's own bytes follow
  // The client's address without the port. Empty if the header names none (LOCAL, UNKNOWN, another family): use the
  // socket's address.
  std::string client;

  // Parses the header at the start of `bytes`. Returns nullopt while it is incomplete. Fails with `invalid` as soon as
  // the bytes cannot become a header of at most bounds::proxy_header_bytes_max.
  static Result<std::optional<ProxyHeader>> parse(std::string_view bytes);
  // Returns how many bytes may be read next without reading past the header. `bytes` is the incomplete header read so
  // far.
  static std::size_t wanted(std::string_view bytes) noexcept;
};

}  // namespace weir
