#include "weir/cli/remote.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/answer.h"
#include "weir/cli/remote_session.h"
#include "weir/net/resolve.h"
#include "weir/net/tls.h"

namespace weir::cli {
namespace {

std::string from_environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

struct Place {
  std::string_view option;
  const char* variable;
  std::string_view standard;
  std::string_view what;
};

Place place_of(Api api) {
  if (api == Api::decision) return {"--server", "WEIR_SERVER", "http://127.0.0.1:8080", "decision API"};
  return {"--admin", "WEIR_ADMIN", "http://127.0.0.1:9090", "admin API"};
}

Result<std::string> read_token(const Arguments& arguments) {
  const std::string& path = arguments["--token-file"];
  if (!arguments["--token"].empty() && !path.empty())
    return Error{Fault::invalid, "give either --token or --token-file"};
  if (!arguments["--token"].empty()) return arguments["--token"];
  if (path.empty()) return from_environment("WEIR_TOKEN");
  std::ifstream file(path);
  if (!file) return Error{Fault::invalid, "--token-file: cannot read " + path};
  std::string token{std::istreambuf_iterator<char>(file), {}};
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) return Error{Fault::invalid, "--token-file: " + path + " is empty"};
  return token;
}

// Whether a 404 is about the path, which exists on every Weir, and not about a limit or a client.
bool is_unknown_path(const RemoteReply& reply) {
  const std::optional<Answer> answer = Answer::read(reply.content);
  return !answer || (*answer)["error"].text().empty() ||
         (*answer)["message"].text().starts_with("there is nothing at ");
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c < 0x21 || c > 0x7E) return false;
  }
  return true;
}

}  // namespace

std::vector<Option> remote_options(Api api) {
  const bool decision = api == Api::decision;
  return {
      {decision ? "--server" : "--admin", "URL",
       decision ? "the decision API: http://host:port, https://host:port or unix:/path (default WEIR_SERVER, or "
                  "http://127.0.0.1:8080)"
                : "the admin API: http://host:port, https://host:port or unix:/path (default WEIR_ADMIN, or "
                  "http://127.0.0.1:9090)"},
      {"--token", "TOKEN", "the token to send (default WEIR_TOKEN)"},
      {"--token-file", "FILE", "a file that contains the token"},
      {"--ca-file", "FILE", "trusted CA certificates, instead of the system's"},
      {"--cert", "FILE", "client certificate, if the server requires one"},
      {"--key", "FILE", "its private key"},
      {"--timeout", "DURATION", "how long to wait for the response (default 5s)"},
  };
}

std::vector<Option> with_remote_options(std::vector<Option> own, Api api) {
  for (Option& option : remote_options(api)) own.push_back(std::move(option));
  return own;
}

Result<Remote> Remote::make(Api api, const Arguments& arguments) {
  const Place place = place_of(api);
  Remote remote;
  remote.api_ = api;
  remote.url_ = arguments[place.option];
  if (remote.url_.empty()) remote.url_ = from_environment(place.variable);
  if (remote.url_.empty()) remote.url_ = place.standard;
  const auto bad_url = [&] {
    return Error{Fault::invalid, std::string(place.option) + ": \"" + remote.url_ +
                                     "\" is not host:port, http://host:port, https://host:port or unix:/path"};
  };
  std::string_view rest = remote.url_;
  const bool secure = rest.starts_with("https://");
  remote.scheme_ = secure ? "https" : "http";
  if (rest.starts_with("unix:")) {
    remote.authority_ = "localhost";
  } else {
    const std::size_t scheme = rest.find("://");
    if (scheme != rest.npos && !secure && !rest.starts_with("http://")) return bad_url();
    if (scheme != rest.npos) rest.remove_prefix(scheme + 3);  // host:port alone means http
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    remote.prefix_ = rest.substr(slash);
    while (remote.prefix_.ends_with('/')) remote.prefix_.pop_back();
    rest = rest.substr(0, slash);
    remote.authority_ = rest;
  }
  std::string target(rest);
  const std::size_t colon = target.rfind(':');
  const bool has_port = colon != target.npos && target.find(']', colon) == target.npos;
  if (!has_port) target += secure ? ":443" : ":80";
  Result<Target> parsed = Target::parse(target);
  if (!parsed || !is_printable(remote.url_)) return bad_url();
  remote.origin_.target = *parsed;

  const std::string& timeout = arguments["--timeout"];
  const Result<Duration> time = parse_duration(timeout.empty() ? "5s" : timeout);
  if (!time || *time <= Duration::zero())
    return Error{Fault::invalid, "--timeout: \"" + timeout + "\" is not a duration such as 5s"};
  remote.timeout_ = *time;
  remote.timeout_given_ = !timeout.empty();
  const Result<std::string> token = read_token(arguments);
  if (!token) return token.error();
  if (!is_printable(*token)) return Error{Fault::invalid, "the token has a character that no token has"};
  remote.token_ = *token;

  if (arguments["--cert"].empty() != arguments["--key"].empty())
    return Error{Fault::invalid, "--cert and --key belong together"};
  if (!secure) return remote;
  TlsClient::Options tls;
  tls.ca_file = arguments["--ca-file"];
  tls.own = {arguments["--cert"], arguments["--key"]};
  tls.protocols = {"h2", "http/1.1"};
  Result<std::unique_ptr<TlsClient>> client = TlsClient::make(tls);
  if (!client) return client.error();
  remote.origin_.tls = std::move(*client);
  remote.origin_.version = http::HttpVersion::negotiate;
  return remote;
}

Result<RemoteReply> Remote::ask(std::string_view method, std::string_view path, std::string_view json) const {
  const Result<std::unique_ptr<RemoteSession>> session = RemoteSession::make(*this);
  if (!session) return session.error();
  return (*session)->ask(method, path, json);
}

Result<RemoteReply> Remote::judged(RemoteReply reply) const {
  if (reply.status == 404 && is_unknown_path(reply)) {
    const Place place = place_of(api_);
    return Error{Fault::invalid, url_ + " is not the " + std::string(place.what) +
                                     " of Weir (404); choose another with " + std::string(place.option) + " or " +
                                     place.variable};
  }
  if (reply.status != 401) return reply;
  return Error{Fault::invalid, token_.empty() ? url_ + " asks for a token; use --token, --token-file or WEIR_TOKEN"
                                              : url_ + " refused the token"};
}

Error Remote::explain(const Error& why) const {
  const Place place = place_of(api_);
  std::string sentence = "no answer from the " + std::string(place.what) + " at " + url_ + ": " + why.detail;
  const bool is_certificate = why.detail.find("certificate") != std::string::npos;
  if (is_certificate && origin_.tls != nullptr) {
    sentence += "; --ca-file names the authority that signed it, and the host of the URL must be in the certificate";
  } else if (why.fault == Fault::unavailable) {
    sentence += "; is the server running? Choose another with " + std::string(place.option) + " or " + place.variable;
  } else if (why.fault == Fault::timeout) {
    sentence += "; --timeout waits longer";
  }
  return {why.fault, sentence};
}

std::string sentence_of(const RemoteReply& reply) {
  const std::optional<Answer> answer = Answer::read(reply.content);
  const std::string message = answer ? (*answer)["message"].text() : std::string();
  if (!message.empty()) return message + " (" + std::to_string(reply.status) + ")";
  return "the server answered with status " + std::to_string(reply.status);
}

Exit exit_of(int status) noexcept {
  return status == 404 ? kDenied : status == 400 ? kUsage : kFailed;
}

std::string escaped_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      append_hex(static_cast<unsigned char>(c), out);
    }
  }
  return out;
}

}  // namespace weir::cli
