#include "weir/server/admin_session.h"

namespace weir {

Result<std::size_t> AdminSession::receive(std::string_view bytes, Queries& queries, std::string& out) {
  (void)queries;
  std::size_t used = 0;
  while (!closing_ && out.size() < bounds::unsent_bytes_max) {
    const RequestReader::Step step = reader_.next(bytes.substr(used));
    used += step.consumed;
    switch (step.event) {
      case RequestReader::Event::more:
        return used;
      case RequestReader::Event::expect:
        out += kHttpContinue;
        break;
      case RequestReader::Event::request:
        respond(out);
        break;
      case RequestReader::Event::problem:
        closing_ = true;
        refuse(reader_.problem().status, out);
        return Error{Fault::invalid, "the stream cannot be read any further"};
    }
  }
  return used;
}

void AdminSession::refuse(int status, std::string& out) {
  HttpResponse response;
  response.status = status;
  response.keep_alive = false;
  write_response(response, out);
}

void AdminSession::respond(std::string& out) {
  const RequestHead& head = reader_.head();
  HttpResponse response;
  std::string content;
  response.content_type = "application/json";
  response.head_only = head.method == "HEAD";
  response.keep_alive = head.framing.keep_alive && !closing_;
  response.http11 = head.framing.http11;
  const bool ready = front_.ready();
  if (head.method != "GET" && head.method != "HEAD") {
    response.status = 405;
    response.fields = "Allow: GET, HEAD\r\n";
    content = R"({"error":"method_not_allowed","message":"only GET and HEAD are answered here"})";
  } else if (head.path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    content = front_.metrics();
  } else if (head.path == "/healthz") {
    content = R"({"status":"alive"})";
  } else if (head.path == "/readyz" || head.path == "/startz") {
    response.status = ready ? 200 : 503;
    content = ready ? R"({"status":"ready"})" : R"({"status":"starting"})";
  } else {
    response.status = 404;
    content = R"({"error":"not_found","message":"the admin listener answers /metrics, /healthz, /readyz and /startz"})";
  }
  response.content = content;
  write_response(response, out);
  closing_ |= !response.keep_alive;
  reader_.forget();
}

void AdminSession::reply(std::uint64_t, const Result<Answer>&, std::string&) {}

void AdminSession::drain(std::string&) {
  closing_ = true;
}

}  // namespace weir
