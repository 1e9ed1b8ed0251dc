// Calls a running server's HTTP APIs and waits for the response. The decision API is at --server, the admin API at
// --admin; both take http://host:port, https://host:port or unix:/path.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/cli/command.h"
#include "weir/http/call.h"

namespace weir::cli {

enum class Api : unsigned char { decision, admin };

// The options of every command that calls a server: --server or --admin, --token, --token-file, --ca-file, --cert,
// --key, --timeout.
std::vector<Option> remote_options(Api api);
// The same behind a command's own options.
std::vector<Option> with_remote_options(std::vector<Option> own, Api api);

struct RemoteReply {
  int status = 0;
  std::string content;
};

class Remote {
 public:
  // Reads the options and the environment (WEIR_SERVER, WEIR_ADMIN, WEIR_TOKEN). The Error is a sentence for the user.
  static Result<Remote> make(Api api, const Arguments& arguments);

  // Sends a request and waits. The Error says what to do about it: no server there, a wrong token.
  Result<RemoteReply> ask(std::string_view method, std::string_view path, std::string_view json = {}) const;
  const std::string& url() const noexcept { return url_; }

 private:
  Remote() = default;
  Error explain(const Error& why) const;

  Api api_ = Api::decision;
  std::string url_;  // as given
  http::Origin origin_;
  std::string scheme_;
  std::string authority_;
  std::string prefix_;  // the path of the URL, without the last slash
  std::string token_;
  Duration timeout_{};
};

// The sentence of an error response: its "message", or its status.
std::string sentence_of(const RemoteReply& reply);

}  // namespace weir::cli
