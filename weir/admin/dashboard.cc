// The dashboard's page, scripts and style. They need no token and hold no data: the page asks for the token and reads
// everything through the API.
#include <algorithm>
#include <string>
#include <string_view>

#include "weir/admin/assets.h"
#include "weir/admin/calls.h"
#include "weir/base/text.h"
#include "weir/wire/http1.h"

namespace weir::admin {
namespace {

// No inline code, nothing from elsewhere, and no other site may frame the page.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view content_type_of(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  return "image/svg+xml";
}

// Weak comparison (RFC 9110 §13.1.2). A cache that compressed a file has made its tag weak.
bool is_known(std::string_view if_none_match, std::string_view tag) {
  if (if_none_match == "*") return true;
  return lists_word(if_none_match, tag) || lists_word(if_none_match, "W/" + std::string(tag));
}

Outcome serve(std::string_view name, const Request& request) {
  const auto all = assets();
  const auto asset = std::ranges::find(all, name, &Asset::name);
  if (asset == all.end()) return refuse(404, "not_found", "the dashboard has no file " + quote(name));
  Reply reply;
  // Weak, because it is the same for the file and for its compressed form (RFC 9110 §8.8.1).
  write_field("ETag", "W/" + std::string(asset->tag), reply.fields);
  write_field("Cache-Control", "no-cache", reply.fields);
  write_field("Vary", "Accept-Encoding", reply.fields);
  write_field("Content-Security-Policy", kContentSecurityPolicy, reply.fields);
  write_field("X-Content-Type-Options", "nosniff", reply.fields);
  write_field("Referrer-Policy", "no-referrer", reply.fields);
  if (is_known(request.if_none_match, asset->tag)) {
    reply.status = 304;
    reply.content_type = {};
    return reply;
  }
  reply.content_type = content_type_of(name);
  const bool gzip = accepts_exactly(request.accept_encoding, "gzip");
  if (gzip) write_field("Content-Encoding", "gzip", reply.fields);
  reply.content = gzip ? asset->gzip : asset->plain;
  return reply;
}

}  // namespace

Outcome dashboard_page(AdminShared&, const Request& request) {
  return serve("index.html", request);
}

Outcome dashboard_asset(AdminShared&, const Request& request) {
  return serve(request.parts[0], request);
}

}  // namespace weir::admin
