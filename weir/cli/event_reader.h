// Reads server-sent events (the HTML standard, "text/event-stream") from bytes as they come.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace weir::cli {

class EventReader {
 public:
  // `name` is "message" where the stream gives none. Views are valid during the call.
  using Event = std::function<void(std::string_view name, std::string_view content)>;

  explicit EventReader(Event event) : event_(std::move(event)) {}

  // Returns false if an event is longer than bounds::event_queue_bytes_max, and reads no more after that.
  bool receive(std::string_view bytes);

 private:
  void line(std::string_view text);

  Event event_;
  std::string line_;  // without its end, which has not come yet
  std::string name_;
  std::string content_;
  bool has_content_ = false;
  bool after_return_ = false;  // a "\n" that comes next belongs to the "\r" before it
  bool failed_ = false;
};

}  // namespace weir::cli
