#include "weir/cli/event_reader.h"

#include <algorithm>

#include "weir/base/bounds.h"

namespace weir::cli {

bool EventReader::receive(std::string_view bytes) {
  while (!failed_ && !bytes.empty()) {
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    line_ += bytes.substr(0, end);
    if (line_.size() + content_.size() > bounds::event_queue_bytes_max) {
      failed_ = true;
      break;
    }
    if (end == bytes.size()) break;
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    line(line_);
    line_.clear();
  }
  return !failed_;
}

void EventReader::line(std::string_view text) {
  if (text.empty()) {
    if (has_content_) event_(name_.empty() ? "message" : name_, content_);
    name_.clear();
    content_.clear();
    has_content_ = false;
    return;
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view field = text.substr(0, colon);
  std::string_view value = text.substr(std::min(colon + 1, text.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field != "data") return;  // comments begin with the colon; other fields are for reconnecting
  if (has_content_) content_ += '\n';
  content_ += value;
  has_content_ = true;
}

}  // namespace weir::cli
