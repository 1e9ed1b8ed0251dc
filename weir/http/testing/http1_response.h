// One whole HTTP/1 response as a test's client reads it, after any interim responses.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace weir::http {

struct Http1Response {
  ResponseHead head;  // views of the text
  std::string content;
  std::size_t size = 0;  // of all that was read
};

// Nothing if the text does not begin with a complete response. `to_head`: to a HEAD request.
inline std::optional<Http1Response> read_http1_response(std::string_view text, bool to_head = false) {
  Http1Response response;
  do {
    const HeadResult head = parse_response_head(text.substr(response.size), to_head, response.head);
    if (head.problem || head.size == 0) return {};
    response.size += head.size;
  } while (response.head.status < 200 && response.head.status != 101);
  HttpBody body(response.head.framing, bounds::http_body_bytes_max);
  while (!body.done()) {
    const HttpBody::BodyPiece piece = body.next(text.substr(response.size));
    if (piece.problem || piece.consumed == 0) return {};
    response.content += piece.content;
    response.size += piece.consumed;
  }
  return response;
}

}  // namespace weir::http
