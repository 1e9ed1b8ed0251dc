#include "weir/protocol/http/http_session.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "weir/base/text.h"
#include "weir/protocol/bad_request.h"
#include "weir/protocol/http/answer_json.h"
#include "weir/protocol/http/authorize.h"
#include "weir/protocol/http/check_body.h"

namespace weir {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kProblemJson = "application/problem+json";
// Of a store that cannot be asked, where the error does not bring the configured failure_code.
constexpr int kFailureCode = 429;

enum class Call : unsigned char { check, throttle, authorize, healthz, readyz, startz, any };

bool is_json(std::string_view content_type) noexcept {
  const std::string_view type = media_type_of(content_type);
  constexpr std::string_view kSuffix = "+json";
  return same_word(type, kJson) ||
         (type.size() > kSuffix.size() && same_word(type.substr(type.size() - kSuffix.size()), kSuffix));
}

bool is_probe(Call call) noexcept {
  return call == Call::healthz || call == Call::readyz || call == Call::startz;
}

}  // namespace

// What can be called.
struct HttpSession::Route {
  std::string_view path;
  Call call;
  Mode mode;
  std::string_view allow;
};

const HttpSession::Route* HttpSession::find_route(std::string_view path) noexcept {
  static constexpr std::array<Route, 10> kRoutes = {{
      {"/v1/check", Call::check, Mode::spend, "POST, OPTIONS"},
      {"/v1/throttle", Call::throttle, Mode::spend, "POST, OPTIONS"},
      {"/v1/refund", Call::check, Mode::refund, "POST, OPTIONS"},
      {"/v1/peek", Call::check, Mode::peek, "POST, OPTIONS"},
      {"/v1/reset", Call::check, Mode::reset, "POST, OPTIONS"},
      {"/v1/authorize", Call::authorize, Mode::spend, {}},
      {"/healthz", Call::healthz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"/readyz", Call::readyz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"/startz", Call::startz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"*", Call::any, Mode::peek, "GET, HEAD, POST, OPTIONS"},
  }};
  const auto route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& r) { return r.path == path; });
  return route == kRoutes.end() ? nullptr : &*route;
}

void HttpShared::at(Wall wall) {
  const auto second = std::chrono::floor<std::chrono::seconds>(wall);
  if (second == dated_ && !date.empty()) return;
  dated_ = second;
  date.clear();
  write_date_field(second, date);
}

// --- bytes in ---

Result<std::size_t> HttpSession::receive(std::string_view bytes, Queries& queries, std::string& out) {
  std::size_t used = 0;
  while ((!closing_ || has_more_to_ask()) && step(bytes, used, queries, out)) {
  }
  flush(out);
  if (!closing_ || has_more_to_ask()) return used;
  wait_for(Waiting::nothing, true);
  // With answers owed the last words wait behind them, and finished() tells.
  if (reader_.problem() && finished()) return Error{Fault::invalid, std::string(reader_.problem().sentence)};
  return bytes.size();
}

// One request, or a part of one. False: nothing more to do with these bytes now.
bool HttpSession::step(std::string_view bytes, std::size_t& used, Queries& queries, std::string& out) {
  if (has_more_to_ask()) return used < bytes.size() && resume_many(used, queries, out);
  if (queries.full() || owes_too_much()) {
    wait_for(Waiting::nothing, true);
    return false;
  }
  const RequestReader::ReadResult read = reader_.next(bytes.substr(used));
  used += read.consumed;
  switch (read.event) {
    case RequestReader::Event::more:
      wait_for(reader_.awaits_content()               ? Waiting::content
               : is_begun_request(bytes.substr(used)) ? Waiting::head
                                                      : Waiting::nothing,
               false);
      return false;
    case RequestReader::Event::problem:
      fail(reader_.problem(), out);
      return false;
    case RequestReader::Event::expect: {
      wait_for(Waiting::content, true);
      Slot& slot = open_slot(&reader_.head());
      slot.keep_alive = false;  // a refusal without reading the content ends the connection
      if (refuse_head(slot, out)) {
        closing_ = true;
        return false;
      }
      slots_.pop_back();
      continue_owed_ = true;
      flush(out);
      return true;
    }
    case RequestReader::Event::request:
      wait_for(Waiting::nothing, true);
      handle(used, queries, out);
      reader_.forget();
      flush(out);
      return true;
  }
  return false;
}

HttpSession::Slot& HttpSession::open_slot(const RequestHead* head) {
  Slot& slot = slots_.emplace_back();
  slot.sequence = next_sequence_;
  slot.interim = std::exchange(continue_owed_, false);
  if (head == nullptr) return slot;
  slot.route = find_route(head->path);
  slot.http11 = head->framing.http11;
  slot.keep_alive = head->framing.keep_alive && !draining_;
  slot.head_only = head->method == "HEAD";
  slot.explain = !head->query.empty() && query_value(head->query, "explain") == "true";
  slot.problem = !head->accept.empty() && accepts_exactly(head->accept, kProblemJson);
  return slot;
}

void HttpSession::handle(std::size_t& used, Queries& queries, std::string& out) {
  Slot& slot = open_slot(&reader_.head());
  if (!slot.keep_alive) closing_ = true;
  if (refuse_head(slot, out)) return;
  if (slot.route->call == Call::authorize) return authorize(slot, queries, out);
  if (reader_.head().method == "OPTIONS") {
    write_field("Allow", slot.route->allow, shared_.fields);
    return send(slot, 204, {}, {}, out);
  }
  if (is_probe(slot.route->call)) return probe(slot, queries, out);
  const Result<JsonValue> body = shared_.json.read(reader_.content());
  if (!body) return refuse(slot, {400, "bad_json", body.error().detail}, out);
  if (body->is(JsonKind::array)) return ask_many(*body, slot, used, queries, out);
  ask_one(*body, slot, queries, out);
}

// Who shows no token where one is needed learns nothing else. True: answered.
bool HttpSession::refuse_caller(Slot& slot, std::string& out) {
  const bool writes = slot.route != nullptr && (slot.route->mode == Mode::refund || slot.route->mode == Mode::reset);
  switch (caller_of(reader_.head(), shared_.tokens, writes)) {
    case Caller::welcome:
      return false;
    case Caller::unknown:
      write_field("WWW-Authenticate", "Bearer", shared_.fields);
      refuse(slot, {401, "unauthorized", "a token is needed: X-Weir-Token, or Authorization: Bearer"}, out);
      return true;
    case Caller::read_only:
      refuse(slot, {403, "forbidden", std::string(slot.route->path) + " needs the write token"}, out);
      return true;
  }
  return false;
}

// What the head alone makes impossible. True: answered.
bool HttpSession::refuse_head(Slot& slot, std::string& out) {
  const RequestHead& head = reader_.head();
  if (refuse_caller(slot, out)) return true;
  if (slot.route == nullptr) {
    refuse(slot, {404, "not_found", "there is nothing at " + quote(head.path)}, out);
    return true;
  }
  if (head.method == "OPTIONS" || slot.route->call == Call::authorize) return false;
  const bool probes = is_probe(slot.route->call);
  if (probes ? head.method != "GET" && head.method != "HEAD" : head.method != "POST") {
    write_field("Allow", slot.route->allow, shared_.fields);
    const std::string_view wanted = probes ? " takes GET or HEAD, not " : " takes POST, not ";
    refuse(slot, {405, "method_not_allowed", std::string(slot.route->path).append(wanted) + quote(head.method)}, out);
    return true;
  }
  // A web page can make a browser send any other type, or none, without asking the server first.
  if (!probes && !is_json(head.content_type)) {
    const std::string given =
        head.content_type.empty() ? "and Content-Type must say so" : "not " + quote(head.content_type);
    refuse(slot, {415, "unsupported_media_type", "the content must be application/json, " + given}, out);
    return true;
  }
  if (!probes && !head.content_encoding.empty() && !same_word(head.content_encoding, "identity")) {
    refuse(slot, {415, "unsupported_media_type", "the content must not be encoded, as " + quote(head.content_encoding)},
           out);
    return true;
  }
  return false;
}

void HttpSession::probe(Slot& slot, Queries& queries, std::string& out) {
  const Health& health = shared_.health;
  const auto tell = [&](bool good, std::string_view yes, std::string_view no) {
    send(slot, good ? 200 : 503, kJson, good ? yes : no, out);
  };
  if (slot.route->call == Call::healthz) return tell(true, R"({"status":"alive"})", {});
  if (slot.route->call == Call::startz) {
    return tell(health.started, R"({"status":"started"})", R"({"status":"starting"})");
  }
  const bool deep = health.store_up && query_value(reader_.head().query, "deep") == "true";
  if (!deep || !health.ready) return tell(health.ready, R"({"status":"ready"})", R"({"status":"not ready"})");
  if (!health.store_up()) return answer_probe(slot, false, out);
  ask(slot, Query{StoreProbe{}}, queries);
}

void HttpSession::answer_probe(Slot& slot, bool store_decides, std::string& out) {
  send(slot, store_decides ? 200 : 503, kJson,
       store_decides ? R"({"status":"ready"})" : R"({"status":"store unavailable"})", out);
}

// --- questions ---

std::optional<ApiError> HttpSession::decode(JsonValue value, const Slot& slot, Queries& queries, Query& query) {
  const bool throttle = slot.route->call == Call::throttle;
  if (auto error = throttle ? read_throttle(value, queries, query) : read_check(value, queries, query)) return error;
  query.mode = slot.route->mode;
  return {};
}

void HttpSession::ask(Slot& slot, const Query& query, Queries& queries) {
  Query& added = queries.add(next_sequence_++);
  added = query;
  if (auto* const facts = std::get_if<RequestFacts>(&added.subject)) facts->caller = peer_;
  ++slot.asked;
}

// A proxy's question: whatever content came with it belongs to the request it asks about.
void HttpSession::authorize(Slot& slot, Queries& queries, std::string& out) {
  const RequestHead& head = reader_.head();
  const std::optional<int> denied = denial_status(head.query);
  if (!denied) return refuse(slot, {400, "bad_value", "deny must be 429 or 403"}, out);
  slot.denied = static_cast<std::int16_t>(*denied);
  Query query;
  read_authorize(head, peer_, queries, query);
  ask(slot, query, queries);
}

namespace {

// The cost of every charge, or 0 if there is not one for all.
Count one_cost(const Query& query) {
  if (const auto* const own = std::get_if<OwnBucket>(&query.subject)) return own->cost;
  if (const auto* const facts = std::get_if<RequestFacts>(&query.subject)) return facts->cost.value_or(0);
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  return named != nullptr && named->charges.size() == 1 ? named->charges[0].cost : 0;
}

}  // namespace

void HttpSession::ask_one(JsonValue value, Slot& slot, Queries& queries, std::string& out) {
  Query query;
  if (const auto error = decode(value, slot, queries, query)) return refuse(slot, *error, out);
  slot.cost = one_cost(query);
  ask(slot, query, queries);
}

void HttpSession::ask_many(JsonValue array, Slot& slot, std::size_t& used, Queries& queries, std::string& out) {
  std::size_t size = 0;
  for (const JsonValue item : array.items()) {
    (void)item;
    ++size;
  }
  if (size > bounds::http_checks_max) {
    const std::string most = std::to_string(bounds::http_checks_max);
    return refuse(slot, {413, "too_large", "the array has more than " + most + " checks"}, out);
  }
  slot.many = std::make_unique<Many>();
  slot.many->answers.resize(size);
  slot.many->costs.resize(size);
  ask_items(array, slot, queries);
  if (slot.many->read == size) {
    if (slot.many->missing == 0) finish_many(slot, out);
    return;
  }
  // The connection calls again while it holds bytes and calls make progress, so it keeps one byte per turn to come.
  // Of those of this call: earlier pieces of the request are gone already.
  slot.many->content = reader_.content();
  slot.many->held_back = std::min(used, 1 + (size - slot.many->read) / bounds::queries_per_turn_max);
  used -= slot.many->held_back;
}

// From the first item not read yet until the queries are full.
void HttpSession::ask_items(JsonValue array, Slot& slot, Queries& queries) {
  Many& many = *slot.many;
  std::size_t i = 0;
  for (const JsonValue item : array.items()) {
    if (i++ < many.read) continue;
    if (queries.full()) return;
    const auto index = static_cast<std::uint32_t>(many.read++);
    Query query;
    if (const auto error = decode(item, slot, queries, query)) {
      log_bad_request(shared_.log, peer_, error->message);
      write_error(error->code, error->message, many.answers[index]);
      many.failed = true;
      continue;
    }
    many.costs[index] = one_cost(query);
    ask(slot, query, queries);
    many.item_of.push_back(index);
    ++many.missing;
  }
}

// True: everything in the array was asked.
bool HttpSession::resume_many(std::size_t& used, Queries& queries, std::string& out) {
  Slot& slot = slots_.back();
  Many& many = *slot.many;
  const std::size_t before = many.read;
  if (queries.full()) return false;
  const Result<JsonValue> array = shared_.json.read(many.content);
  ask_items(*array, slot, queries);
  if (many.read == before) return false;
  if (many.read < many.answers.size()) {
    if (many.held_back > 1) {
      --many.held_back;
      ++used;
    }
    return false;
  }
  used += std::exchange(many.held_back, 0);
  many.content = {};
  if (many.missing == 0) finish_many(slot, out);
  return true;
}

// --- answers ---

void HttpSession::reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) {
  Slot* const slot = slot_of(sequence);
  if (slot == nullptr) return;
  ++replied_;
  if (slot->many) {
    answer_item(*slot, slot->many->item_of[sequence - slot->sequence], answer);
    if (slot->many->missing == 0 && slot->many->held_back == 0) finish_many(*slot, out);
  } else {
    answer_one(*slot, answer, out);
  }
  flush(out);
}

// Why there are no numbers, if there are none.
std::optional<ApiError> HttpSession::error_in(const Slot& slot, Count cost, const Result<Answer>& answer) const {
  if (!answer) {
    const Fault fault = answer.error().fault;
    FaultStatus status = status_of(fault);
    if (status.status == 0) {
      status.status = answer.error().code != 0 ? answer.error().code : kFailureCode;
    }
    // Whoever brings the numbers along has no id that could be bad.
    if (fault == Fault::invalid && slot.route->call == Call::throttle) status.code = "bad_value";
    if (!answer.error().word.empty()) status.code = answer.error().word;
    if (fault == Fault::internal) return ApiError{status.status, status.code, "the server failed; its log says why"};
    return ApiError{status.status, status.code, answer.error().detail};
  }
  const Verdict& verdict = answer->verdict;
  if (verdict.allowed || verdict.all.empty() || slot.route->mode == Mode::reset) return {};
  const Decision& decision = verdict.speaker();
  // A blocked client waits for ever too; its bucket has no size.
  if (decision.retry_after != kNever || decision.burst == 0) return {};
  std::string message = cost > 0 ? "cost " + std::to_string(cost) : "the cost";
  message += " can never pass: burst is " + std::to_string(decision.burst);
  const std::string_view limit = answer->labels[verdict.strictest].limit;
  if (!limit.empty()) message += " in limit " + quote(limit);
  return ApiError{400, "cost_exceeds_burst", message};
}

void HttpSession::answer_one(Slot& slot, const Result<Answer>& answer, std::string& out) {
  if (slot.route->call == Call::readyz) return answer_probe(slot, bool(answer), out);
  if (slot.route->call == Call::authorize && answer) {
    write_rate_headers(*answer, answer->headers, shared_.fields);
    const int denied = answer->access == Access::deny_listed ? 403 : slot.denied;
    return send(slot, answer->verdict.allowed ? 200 : denied, {}, {}, out);
  }
  if (auto error = error_in(slot, slot.cost, answer)) {
    // Whoever wants 403 for a denial can make nothing of any other refusal.
    const bool own = !answer && answer.error().fault == Fault::internal;
    if (slot.route->call == Call::authorize && slot.denied != 429 && !own) error->status = slot.denied;
    return refuse(slot, *error, out);
  }
  if (slot.route->mode == Mode::reset) return send(slot, 204, {}, {}, out);
  const bool denied = slot.route->mode == Mode::spend && !answer->verdict.allowed;
  const bool no_access = answer->access == Access::deny_listed;
  const int status = !denied ? 200 : no_access ? 403 : 429;
  write_rate_headers(*answer, answer->headers, shared_.fields);
  shared_.content.clear();
  if (denied && slot.problem) {
    write_denial_problem(*answer, shared_.content);
    return send(slot, status, kProblemJson, shared_.content, out);
  }
  write_answer(*answer, slot.explain, denied || no_access ? Denial::explained : Denial::plain, shared_.content);
  send(slot, status, kJson, shared_.content, out);
}

void HttpSession::answer_item(Slot& slot, std::size_t item, const Result<Answer>& answer) {
  Many& many = *slot.many;
  std::string& text = many.answers[item];
  --many.missing;
  if (const auto error = error_in(slot, many.costs[item], answer)) {
    log_bad_request(shared_.log, peer_, error->message);
    write_error(error->code, error->message, text);
    many.failed = true;
  } else if (slot.route->mode == Mode::reset) {
    text = "{}";
  } else {
    const bool no_access = answer->access == Access::deny_listed;
    write_answer(*answer, slot.explain, no_access ? Denial::explained : Denial::plain, text);
  }
}

void HttpSession::finish_many(Slot& slot, std::string& out) {
  const std::unique_ptr<Many> many = std::move(slot.many);
  if (slot.route->mode == Mode::reset && !many->failed) return send(slot, 204, {}, {}, out);
  std::string& content = shared_.content;
  content.clear();
  for (const std::string& answer : many->answers) content.append(1, content.empty() ? '[' : ',').append(answer);
  content += content.empty() ? "[]" : "]";
  send(slot, 200, kJson, content, out);
}

void HttpSession::refuse(Slot& slot, const ApiError& error, std::string& out) {
  if (error.status < 429) log_bad_request(shared_.log, peer_, error.message);
  shared_.content.clear();
  write_error(error.code, error.message, shared_.content);
  // Refused because the store is away: nobody knows for how long.
  if (error.status == 429 || error.status == 503) write_field("Retry-After", "1", shared_.fields);
  send(slot, error.status, kJson, shared_.content, out);
}

// Writes the answer to where it belongs, with the fields on the workbench.
void HttpSession::send(Slot& slot, int status, std::string_view content_type, std::string_view content,
                       std::string& out) {
  shared_.fields += shared_.date;
  const bool next = &slot == &slots_[first_];
  if (next && std::exchange(slot.interim, false)) out += kHttpContinue;
  write_response({status, content_type, shared_.fields, content, slot.head_only, slot.keep_alive, slot.http11},
                 next ? out : slot.text);
  shared_.fields.clear();
  slot.done = true;
}

// The stream cannot be read any further: the last words.
void HttpSession::fail(const HttpProblem& problem, std::string& out) {
  closing_ = true;
  Slot& slot = open_slot(nullptr);
  slot.keep_alive = false;
  refuse(slot, {problem.status, code_of(problem.status), std::string(problem.sentence)}, out);
}

// Hands over what is complete, in order.
void HttpSession::flush(std::string& out) {
  while (first_ < slots_.size()) {
    Slot& slot = slots_[first_];
    if (std::exchange(slot.interim, false)) out += kHttpContinue;
    if (!slot.done) return;
    out += slot.text;
    slot.text = {};
    ++first_;
  }
  slots_.clear();
  first_ = 0;
  if (slots_.capacity() > 8) std::vector<Slot>().swap(slots_);  // an idle connection is small
  if (std::exchange(continue_owed_, false)) out += kHttpContinue;
}

HttpSession::Slot* HttpSession::slot_of(std::uint64_t sequence) noexcept {
  for (std::size_t i = first_; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (sequence >= slot.sequence && sequence - slot.sequence < slot.asked && !slot.done) return &slot;
  }
  return nullptr;
}

bool HttpSession::has_more_to_ask() const noexcept {
  return first_ < slots_.size() && slots_.back().many && slots_.back().many->held_back > 0;
}

bool HttpSession::owes_too_much() const noexcept {
  return slots_.size() >= bounds::http_pipeline_max || next_sequence_ - replied_ >= bounds::http_checks_max;
}

// --- time, and the end ---

void HttpSession::wait_for(Waiting waiting, bool anew) noexcept {
  if (anew || waiting != waiting_) since_ = now_;
  waiting_ = waiting;
}

Time HttpSession::deadline() const noexcept {
  if (waiting_ == Waiting::nothing || since_ == Time::max()) return Time::max();
  return since_ + (waiting_ == Waiting::head ? bounds::http_head_time_max : bounds::http_body_time_max);
}

void HttpSession::expire(Time now, std::string& out) {
  if (closing_ || now < deadline()) return;
  const bool head = waiting_ == Waiting::head;
  fail({408, head ? "the head of the request did not come in time" : "the content did not come in time"}, out);
  wait_for(Waiting::nothing, true);
  flush(out);
}

void HttpSession::hang_up(std::string& out) {
  if (closing_ || waiting_ == Waiting::nothing) return;
  fail({400, "the connection ended in the middle of the request"}, out);
  wait_for(Waiting::nothing, true);
  flush(out);
}

void HttpSession::drain(std::string& out) {
  draining_ = true;
  // A request whose head has been taken is still answered; whatever comes behind it is not.
  if (!reader_.awaits_content()) {
    closing_ = true;
    if (first_ < slots_.size()) slots_.back().keep_alive = false;
  }
  flush(out);
}

}  // namespace weir
