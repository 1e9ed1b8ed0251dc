// What a conversation over HTTP is expected to read like, for the conformance kit's users.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// The last newline of JSON says nothing: a test compares what stands before it.
inline std::string_view without_newline(std::string_view content) {
  return content.ends_with('\n') ? content.substr(0, content.size() - 1) : content;
}

inline std::string response(std::string_view status, std::string_view fields, std::string_view content) {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nContent-Type: application/json\r\nContent-Length: ");
  text.append(std::to_string(content.size() + 1)).append("\r\n").append(fields).append("\r\n");
  return text.append(content).append("\n");
}

// The problem that every call tells in the same form.
inline std::string error(std::string_view status, std::string_view code, std::string_view message,
                         std::string_view fields = {}) {
  const std::string content = R"({"error":")" + std::string(code) + R"(","message":")" + std::string(message) + "\"}";
  return response(status, fields, content);
}

// The same, before the connection ends.
inline std::string last_words(std::string_view status, std::string_view code, std::string_view message) {
  return error(status, code, message, "Connection: close\r\n");
}

}  // namespace weir
