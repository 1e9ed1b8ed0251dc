#include "weir/http/http1_session.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/bad_request.h"

namespace weir::http {
namespace {

// Marks that settle() runs at the end of the call, so that exchanges need not ask for it.
class InCall {
 public:
  explicit InCall(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  ~InCall() { flag_ = false; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  bool& flag_;
};

}  // namespace

Http1Session::Http1Session(HttpShared& shared, Handler& handler, const NewConnection& connection)
    : host_(shared, handler, connection.output, connection.peer, connection.tls) {}

Http1Session::~Http1Session() {
  lost();
}

void Http1Session::wake() noexcept {
  host_.output.touch();
  if (!in_call_) host_.output.wants_fill = true;
}

// --- bytes in ---

Result<std::size_t> Http1Session::receive(std::string_view bytes, Queries& queries, Now now) {
  const InCall in_call(in_call_);
  const ExchangeHost::Asking asking(host_, queries, now);
  std::size_t used = 0;
  while (!closing_ && step(bytes, used)) {
  }
  settle();
  if (!closing_) return used;
  wait_for(Waiting::nothing, true);
  // With responses pending, the error reply follows them, and finished() reports the end.
  if (broken_ && finished()) return Error{Fault::invalid, "the request is not HTTP"};
  return bytes.size();
}

// Reads one request, or a part of one. False: nothing more to do with these bytes now.
bool Http1Session::step(std::string_view bytes, std::size_t& used) {
  settle();
  if (closing_) return false;
  if (receiving_ != nullptr && receiving_->tunnel_) return read_tunnel(bytes, used);
  if (receiving_ != nullptr || dropping_) return read_body(bytes, used);
  if (host_.queries->full() || !may_begin()) {
    wait_for(Waiting::nothing, true);
    return false;
  }
  return read_head(bytes, used);
}

bool Http1Session::may_begin() const noexcept {
  if (front_ == nullptr) return true;
  return host_.handler.overlaps() && open_ < bounds::http_pipeline_max && host_.owed < bounds::http_checks_max &&
         held_bytes_ < bounds::session_held_bytes_max && !host_.has_waiting();
}

// Parses again only when a line is complete, of which there are about a hundred, or a limit is reached: a peer that
// sends single bytes costs no more than the search for line ends.
bool Http1Session::is_worth_parsing(std::string_view bytes) noexcept {
  if (searched_ == 0) return true;
  const std::size_t start = bytes.starts_with("\r\n") ? 2 : 0;
  const bool line = bytes.find('\n', std::max(searched_, start)) != bytes.npos;
  const HttpLimits& limits = host_.shared.limits;
  const bool long_line = !has_line_ && bytes.size() >= start + limits.line_bytes_max + 2;
  has_line_ = has_line_ || line;
  return line || long_line || bytes.size() >= limits.head_bytes_max;
}

bool Http1Session::read_head(std::string_view bytes, std::size_t& used) {
  const std::string_view rest = bytes.substr(used);
  RequestHead& head = host_.shared.head;
  HeadResult parsed;
  if (is_worth_parsing(rest)) parsed = parse_request_head(rest, head, host_.shared.limits);
  if (parsed.problem) {
    fail(parsed.problem);
    return false;
  }
  if (parsed.size == 0) {
    if (searched_ == 0) has_line_ = rest.find('\n', rest.starts_with("\r\n") ? 2 : 0) != rest.npos;
    searched_ = rest.size();
    wait_for(is_begun_request(rest) ? Waiting::head : Waiting::nothing, false);
    return false;
  }
  searched_ = 0;
  has_line_ = false;
  wait_for(Waiting::nothing, true);
  used += parsed.size;
  begin(bytes, used);
  return true;
}

void Http1Session::begin(std::string_view bytes, std::size_t& used) {
  RequestHead& head = host_.shared.head;
  head.scheme = host_.secure ? "https" : "http";
  Http1Exchange* const opened = open_exchange(&head);
  if (opened == nullptr) return fail(kTooManyExchanges);
  Http1Exchange& exchange = *opened;
  BodyPart first;
  const HttpFraming& framing = head.framing;
  if (framing.content == HttpContent::none || (framing.content == HttpContent::length && framing.length == 0)) {
    first.last = true;
  } else {
    body_ = HttpBody(framing, std::numeric_limits<std::uint64_t>::max());
    receiving_ = &exchange;
    window_left_ = host_.shared.limits.body_progress_bytes;
    if (framing.content == HttpContent::length && !exchange.expects_) {
      const HttpBody::BodyPiece piece = body_.next(bytes.substr(used), bounds::http_window_bytes);
      used += piece.consumed;
      first = {piece.content, body_.done()};
      exchange.credit_ -= piece.content.size();
      exchange.unconsumed_ += piece.content.size();
      window_left_ -= std::min<std::uint64_t>(window_left_ - 1, piece.content.size());
    }
  }
  if (first.last) stop_receiving(&exchange);
  exchange.deliver([&](Receiver&) { host_.handler.begin(exchange, head, first); });
}

bool Http1Session::read_body(std::string_view bytes, std::size_t& used) {
  Http1Exchange* const exchange = receiving_;
  const bool drops = dropping_ || exchange->discards_;
  if (!drops && (exchange->credit_ == 0 || exchange->expects_)) {
    wait_for(Waiting::nothing, true);  // we hold the peer back: no deadline
    return false;
  }
  wait_for(Waiting::content, false);
  const std::size_t most = drops ? bounds::http_window_bytes : exchange->credit_;
  const HttpBody::BodyPiece piece = body_.next(bytes.substr(used), most);
  if (piece.problem) {
    fail(piece.problem);
    return false;
  }
  used += piece.consumed;
  if (piece.content.size() >= window_left_) {  // the peer keeps up: restart its deadline
    window_left_ = host_.shared.limits.body_progress_bytes;
    wait_for(Waiting::content, true);
  } else {
    window_left_ -= piece.content.size();
  }
  const bool done = body_.done();
  if (drops) {
    if (done) stop_receiving(exchange);
    return done || piece.consumed > 0;
  }
  if (!done && piece.content.empty()) return piece.consumed > 0;
  const std::vector<HttpHeader> trailers = done ? body_.trailers() : std::vector<HttpHeader>{};
  const BodyPart part{piece.content, done, trailers};
  if (done) stop_receiving(exchange);
  deliver_body(*exchange, part);
  return true;
}

bool Http1Session::read_tunnel(std::string_view bytes, std::size_t& used) {
  const std::string_view part = bytes.substr(used, receiving_->discards_ ? bytes.npos : receiving_->credit_);
  if (part.empty()) return false;
  used += part.size();
  if (!receiving_->discards_) deliver_body(*receiving_, {part, false});
  return true;
}

void Http1Session::deliver_body(Http1Exchange& exchange, BodyPart part) {
  exchange.credit_ -= part.bytes.size();
  exchange.unconsumed_ += part.bytes.size();
  exchange.deliver([&](Receiver& receiver) { receiver.body(exchange, part); });
}

// The request of `exchange` is complete; null: its content was dropped behind the response.
void Http1Session::stop_receiving(const Http1Exchange* exchange) noexcept {
  if (exchange != nullptr && !exchange->keep_alive_) closing_ = true;  // it was the last
  receiving_ = nullptr;
  dropping_ = false;
  wait_for(Waiting::nothing, true);
}

// --- questions ---

void Http1Session::resume(Queries& queries, Now now) {
  const InCall in_call(in_call_);
  const ExchangeHost::Asking asking(host_, queries, now);
  host_.let_ask();
  settle();
}

void Http1Session::reply(std::uint64_t token, const Result<Answer>& answer) {
  if (host_.owed > 0) --host_.owed;
  auto* const exchange = static_cast<Http1Exchange*>(host_.shared.exchanges->find(token, host_));
  if (exchange == nullptr || !exchange->open()) return;
  const InCall in_call(in_call_);
  exchange->deliver([&](Receiver& receiver) { receiver.answered(*exchange, ExchangeToken::question(token), answer); });
  settle();
  host_.output.touch();  // input that waited for this answer can be read
}

// --- exchanges ---

// `head` is null for a request that cannot be read and is refused.
Http1Exchange* Http1Session::open_exchange(const RequestHead* head) {
  const auto use = head == nullptr ? ExchangeTable::Use::refusal : ExchangeTable::Use::request;
  Http1Exchange* const exchange = host_.shared.exchanges->take<Http1Exchange>(host_, use);
  if (exchange == nullptr) return nullptr;
  exchange->start(*this, head);
  (front_ == nullptr ? front_ : back_->next_) = exchange;
  back_ = exchange;
  ++open_;
  return exchange;
}

void Http1Session::end(Http1Exchange& exchange, Ending ending) {
  if (receiving_ == &exchange) receiving_ = nullptr;
  // What the receiver does now has no effect.
  if (exchange.open()) exchange.reply_ = Http1Exchange::Reply::abandoned;
  if (!exchange.silent_) exchange.end(ending);
  empty_spare_text(exchange.held_);
  --open_;
  host_.shared.exchanges->release(exchange);
}

void Http1Session::end_all(Ending ending) {
  while (front_ != nullptr) {
    Http1Exchange& exchange = *front_;
    front_ = exchange.next_;
    end(exchange, ending);
  }
  back_ = nullptr;
  held_bytes_ = 0;
}

// Releases exchanges that are over and lets the next ones write.
void Http1Session::settle() {
  while (front_ != nullptr && settle_front()) {
  }
}

// True: the front exchange is over.
bool Http1Session::settle_front() {
  Http1Exchange& exchange = *front_;
  if (exchange.reply_ == Http1Exchange::Reply::abandoned) {
    closing_ = true;
    front_ = exchange.next_;
    end(exchange, Ending::aborted);
    end_all(Ending::lost);
    return true;
  }
  if (exchange.open()) return false;
  if (receiving_ == &exchange) {  // answered before the request was complete
    receiving_ = nullptr;
    dropping_ = exchange.keep_alive_;
    // Until now it had no deadline.
    if (waiting_ == Waiting::content) since_ = host_.shared.now(host_.now).time;
  }
  const bool keep_alive = exchange.keep_alive_;
  if (!keep_alive) closing_ = true;
  front_ = exchange.next_;
  end(exchange, Ending::complete);
  if (front_ == nullptr) {
    back_ = nullptr;
    return false;
  }
  if (!keep_alive) {  // nothing may follow this response
    end_all(Ending::lost);
    return false;
  }
  promote(*front_);
  return true;
}

// Lets the exchange write to the output.
void Http1Session::promote(Http1Exchange& exchange) {
  held_bytes_ -= exchange.held_.size();
  host_.output.bytes += exchange.held_;
  exchange.held_.clear();
  if (exchange.undrained_ > 0) host_.output.wants_fill = true;
  if (exchange.silent_ || !exchange.open() || exchange.reply_ == Http1Exchange::Reply::none) return;
  exchange.deliver([&](Receiver& receiver) { receiver.drained(exchange, 0); });
}

// --- errors ---

// The input cannot be read any further: answers the incomplete request with the problem.
void Http1Session::fail(const HttpProblem& problem) {
  broken_ = true;
  searched_ = 0;
  log_bad_request(host_.shared.log, host_.peer, problem.sentence);
  wait_for(Waiting::nothing, true);
  Http1Exchange* exchange = receiving_;
  if (dropping_ || (exchange != nullptr && exchange->reply_ != Http1Exchange::Reply::none)) {
    // The response is complete or has begun: an error cannot be added.
    dropping_ = false;
    if (exchange != nullptr) exchange->abort();
    closing_ = true;
    return settle();
  }
  receiving_ = nullptr;
  closing_ = true;
  if (exchange == nullptr) exchange = open_exchange(nullptr);
  if (exchange == nullptr) return settle();
  write_error(*exchange, problem);
  settle();
}

void Http1Session::write_error(Http1Exchange& exchange, const HttpProblem& problem) {
  exchange.keep_alive_ = false;
  exchange.deliver([&](Receiver& receiver) { receiver.refused(exchange, problem); });
  if (exchange.open()) exchange.abort();
  // Tells the receiver that the request never became complete.
  if (exchange.silent_) return;
  exchange.end(Ending::canceled);
  exchange.silent_ = true;
}

// --- output, time, and the end ---

bool Http1Session::reading() const noexcept {
  if (closing_ || dropping_) return true;
  if (receiving_ == nullptr) return may_begin();
  return receiving_->discards_ || (receiving_->credit_ > 0 && !receiving_->expects_);
}

void Http1Session::fill(std::size_t unsent) {
  const InCall in_call(in_call_);
  host_.output.wants_fill = false;
  settle();
  if (front_ == nullptr || front_->undrained_ == 0) return;
  // Framing counts as content here; the rest is reported when everything is sent.
  const std::size_t left = std::min(front_->undrained_, unsent);
  const std::size_t drained = std::exchange(front_->undrained_, left) - left;
  if (drained > 0) {
    Http1Exchange& exchange = *front_;
    exchange.deliver([&](Receiver& receiver) { receiver.drained(exchange, drained); });
    settle();
  }
  if (front_ != nullptr && front_->undrained_ > 0) host_.output.wants_fill = true;
}

void Http1Session::end_of_input(Now now) {
  host_.now = now;
  if (closing_) return;
  const InCall in_call(in_call_);
  if (receiving_ != nullptr && receiving_->tunnel_) {
    Http1Exchange& exchange = *receiving_;
    receiving_ = nullptr;
    const bool answered = exchange.reply_ == Http1Exchange::Reply::no_body;
    if (!exchange.discards_) deliver_body(exchange, {{}, true});
    if (answered) exchange.reply_ = Http1Exchange::Reply::complete;
    settle();
    closing_ = true;
    host_.output.touch();
    return;
  }
  const bool incomplete = receiving_ != nullptr || waiting_ != Waiting::nothing;
  if (incomplete) fail(kCutOff);
  closing_ = true;
  settle();
  host_.output.touch();
}

void Http1Session::lost() {
  const InCall in_call(in_call_);
  closing_ = true;
  dropping_ = false;
  end_all(Ending::lost);
}

void Http1Session::wait_for(Waiting waiting, bool anew) noexcept {
  if (anew || waiting != waiting_) since_ = host_.now.time;
  waiting_ = waiting;
}

Time Http1Session::deadline() const noexcept {
  // Once the response has begun, client and handler may talk in turns, at their own pace.
  const bool in_turns = receiving_ != nullptr && receiving_->reply_ != Http1Exchange::Reply::none;
  if (waiting_ == Waiting::nothing || (in_turns && !receiving_->discards_)) return host_.expiry;
  const HttpLimits& limits = host_.shared.limits;
  const Duration most = waiting_ == Waiting::head ? limits.head_time_max : limits.body_time_max;
  return std::min(host_.expiry, since_ + most);
}

void Http1Session::expire(Time now) {
  const InCall in_call(in_call_);
  host_.now.time = now;
  if (host_.expiry <= now) {
    host_.expiry = Time::max();
    for (Http1Exchange* exchange = front_; exchange != nullptr; exchange = exchange->next_) {
      if (!exchange->silent_ && exchange->open()) exchange->expire(now);
      host_.expiry = std::min(host_.expiry, exchange->expiry());
    }
    settle();
  }
  if (closing_ || waiting_ == Waiting::nothing || now < deadline()) return;
  fail(waiting_ == Waiting::head ? kHeadTooSlow : kContentTooSlow);
  host_.output.touch();
}

void Http1Session::drain(Time now) {
  const InCall in_call(in_call_);
  host_.now.time = now;
  for (Http1Exchange* exchange = front_; exchange != nullptr; exchange = exchange->next_) {
    if (exchange->silent_ || !exchange->open()) continue;
    exchange->deliver([&](Receiver& receiver) { receiver.draining(*exchange); });
  }
  settle();
  host_.output.touch();
  if (receiving_ != nullptr && receiving_->tunnel_) return;
  // A request whose head was read is still answered; later ones are not.
  if (back_ != nullptr) back_->keep_alive_ = false;
  if (receiving_ == nullptr) closing_ = true;
}

}  // namespace weir::http
