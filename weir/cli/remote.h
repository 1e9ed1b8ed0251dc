// The address of a running server and the credentials for it: --server for the decision API, --admin for the admin API.
// Both take http://host:port, https://host:port or unix:/path. RemoteSession makes the calls.
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
// The same, appended to a command's own options.
std::vector<Option> with_remote_options(std::vector<Option> own, Api api);

struct RemoteReply {
  int status = 0;
  std::string content;
};

class Remote {
 public:
  // Reads the options and the environment (WEIR_SERVER, WEIR_ADMIN, WEIR_TOKEN). The Error is a sentence for the user.
  static Result<Remote> make(Api api, const Arguments& arguments);

  // Sends one request and waits. The Error says what to do about it: no server there, a wrong token.
  Result<RemoteReply> ask(std::string_view method, std::string_view path, std::string_view json = {}) const;
  const std::string& url() const noexcept { return url_; }
  Duration timeout() const noexcept { return timeout_; }
  // Sets the timeout of a call that may take long, unless --timeout is given.
  void wait_up_to(Duration time) noexcept {
    if (!timeout_given_) timeout_ = time;
  }

  // Explains a failed call to the user, with what to do about it.
  Error explain(const Error& why) const;
  // Returns an Error if the token is missing or wrong; otherwise the reply.
  Result<RemoteReply> judged(RemoteReply reply) const;

 private:
  friend class RemoteSession;
  Remote() = default;

  Api api_ = Api::decision;
  std::string url_;  // as given
  http::Origin origin_;
  std::string scheme_;
  std::string authority_;
  std::string prefix_;  // the path of the URL, without the last slash
  std::string token_;
  Duration timeout_{};
  bool timeout_given_ = false;
};

// The sentence of an error response: its "message", or its status.
std::string sentence_of(const RemoteReply& reply);

// The exit status for an error response.
Exit exit_of(int status) noexcept;

// Percent-encodes everything but letters, digits and "-._~": for one part of a path or of a query.
std::string escaped_part(std::string_view text);

}  // namespace weir::cli
