#include "weir/cli/remote_session.h"

#include <optional>
#include <utility>

#include "weir/base/bounds.h"

namespace weir::cli {

// Receives one response. Reports its end in a later turn, so that the owner may destroy it there.
class RemoteSession::Receiver final : public Pending, public http::Call::Owner {
 public:
  Receiver(RemoteSession& session, Bytes bytes, Done done)
      : session_(session), calls_(std::make_shared<Callbacks>(Callbacks{std::move(bytes), std::move(done)})) {}
  http::Call call;

 private:
  struct Callbacks {
    Bytes bytes;
    Done done;
  };

  void head(const ResponseHead& head, http::BodyPart first) override {
    reply_.status = head.status;
    body(first);
  }

  void body(http::BodyPart part) override {
    if (calls_->bytes && reply_.status == 200) {
      // The callback may destroy this object, but not itself.
      const std::shared_ptr<Callbacks> calls = calls_;
      calls->bytes(part.bytes);
      if (calls.use_count() == 1) return;
    } else {
      reply_.content += part.bytes;
    }
    if (reply_.content.size() > bounds::http_response_bytes_max) {
      call.cancel();
      return finish(Error{Fault::too_large, session_.remote_.url() + " answered with more than 16 MiB"});
    }
    if (part.last) return finish(session_.remote_.judged(std::move(reply_)));
    call.consumed(part.bytes.size());
  }

  void failed(const http::CallFailure& why) override { finish(session_.remote_.explain(why.error)); }

  void finish(Result<RemoteReply> reply) {
    session_.loop_->post([calls = std::weak_ptr<Callbacks>(calls_), reply = std::move(reply)] {
      if (const auto alive = calls.lock()) alive->done(reply);
    });
  }

  RemoteSession& session_;
  std::shared_ptr<Callbacks> calls_;
  RemoteReply reply_;
};

Result<std::unique_ptr<RemoteSession>> RemoteSession::make(Remote remote) {
  std::unique_ptr<RemoteSession> session(new RemoteSession(std::move(remote)));
  Result<std::unique_ptr<Loop>> loop = Loop::make(session->clock_);
  if (!loop) return loop.error();
  session->loop_ = std::move(*loop);
  session->pool_ = std::make_unique<http::ClientPool>(*session->loop_, session->resolver_, http::ClientPool::Options{});
  return session;
}

void RemoteSession::start(Receiver& receiver, std::string_view method, std::string_view path, std::string_view json,
                          const http::CallOptions& options) {
  const std::string target = remote_.prefix_ + std::string(path);
  std::string fields = "Accept: application/json, text/event-stream\r\n";
  // Servers without tokens take writes only with a content type that no form of a web page can send.
  if (method != "GET") fields += "Content-Type: application/json\r\n";
  if (!remote_.token_.empty()) fields += "Authorization: Bearer " + remote_.token_ + "\r\n";
  http::CallHead head;
  head.method = method;
  head.scheme = remote_.scheme_;
  head.authority = remote_.authority_;
  head.path = target;
  head.fields.lines = fields;
  receiver.call = pool_->call(remote_.origin_, head, {json, true, {}}, receiver, options);
}

std::unique_ptr<RemoteSession::Pending> RemoteSession::ask_later(std::string_view method, std::string_view path,
                                                                 std::string_view json, Done done) {
  http::CallOptions options;
  options.connect_timeout = options.response_timeout = options.idle_timeout = remote_.timeout_;
  options.deadline = clock_.time() + remote_.timeout_;
  auto receiver = std::make_unique<Receiver>(*this, Bytes{}, std::move(done));
  start(*receiver, method, path, json, options);
  return receiver;
}

std::unique_ptr<RemoteSession::Pending> RemoteSession::stream(std::string_view path, Duration silence, Bytes bytes,
                                                              Done done) {
  http::CallOptions options;
  options.connect_timeout = options.response_timeout = remote_.timeout_;
  options.idle_timeout = silence;
  auto receiver = std::make_unique<Receiver>(*this, std::move(bytes), std::move(done));
  start(*receiver, "GET", path, {}, options);
  return receiver;
}

Result<RemoteReply> RemoteSession::ask(std::string_view method, std::string_view path, std::string_view json) {
  std::optional<Result<RemoteReply>> answer;
  const auto pending = ask_later(method, path, json, [&](const Result<RemoteReply>& reply) {
    answer = reply;
    loop_->stop();
  });
  while (!answer) loop_->run();
  return std::move(*answer);
}

}  // namespace weir::cli
