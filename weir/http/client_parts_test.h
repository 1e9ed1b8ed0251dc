// For tests of clients: an output that is a string, and an owner that tells what happened to its call in words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/call_state.h"
#include "weir/http/http_client.h"
#include "weir/protocol/session.h"

namespace weir::http {

class TextOutput final : public Output {
 public:
  TextOutput() : Output(text_) {}
  bool take_touched() noexcept { return std::exchange(touched_, false); }

  // What was written, taken by the kernel.
  std::string take(std::size_t bytes_max = std::string::npos) {
    std::string part = text_.substr(0, bytes_max);
    text_.erase(0, part.size());
    taken += part.size();
    return part;
  }
  std::uint64_t taken = 0;

 private:
  void wake() override {}
  std::string text_;
};

inline std::string_view name_of(Fault fault) {
  constexpr std::string_view kNames[] = {"invalid",     "too_large",  "unknown", "timeout",
                                         "unavailable", "overloaded", "internal"};
  return kNames[static_cast<std::size_t>(fault)];
}

// One line per event. Parts of a body are joined if `joins`, so that the text does not depend on how bytes were split.
class TellingOwner : public Call::Owner {
 public:
  std::string record;
  std::size_t unconsumed = 0;
  std::size_t drained_bytes = 0;
  int ends = 0;
  int heads = 0;
  int failures = 0;
  bool joins = false;
  std::string content;

  void informed(const ResponseHead& head) override { record += "informed " + std::to_string(head.status) + "\n"; }
  void head(const ResponseHead& head, BodyPart first) override {
    ++heads;
    record += "head " + std::to_string(head.status);
    for (const HttpHeader& field : head.headers.all())
      record.append(" ").append(field.name).append("=").append(field.value);
    record += "\n";
    if (!first.bytes.empty() || first.last) add(first);
  }
  void body(BodyPart part) override { add(part); }
  void drained(std::size_t bytes) override { drained_bytes += bytes; }
  void failed(const CallFailure& failure) override {
    flush();
    ++ends;
    ++failures;
    record.append("failed ").append(name_of(failure.error.fault)).append(failure.sent ? " sent" : " unsent");
    record.append(failure.response_begun ? " begun: " : ": ").append(failure.error.detail).append("\n");
  }
  std::string take() {
    flush();
    return std::exchange(record, {});
  }

 private:
  void add(BodyPart part) {
    unconsumed += part.bytes.size();
    content += part.bytes;
    if (!joins || part.last) flush(part.last);
    if (!part.last) return;
    ++ends;
    for (const HttpHeader& field : part.trailers)
      record.append("trailer ").append(field.name).append("=").append(field.value).append("\n");
  }
  void flush(bool last = false) {
    if (!content.empty() || last)
      record.append(last ? "last " : "body ").append(std::exchange(content, {})).append("\n");
  }
};

}  // namespace weir::http
