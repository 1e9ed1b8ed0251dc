#include "weir/identify/handle.h"

#include <algorithm>
#include <vector>

#include "weir/core/identifier.h"
#include "weir/identify/digest.h"

namespace weir {
namespace {

constexpr std::string_view kMark = "…#";
constexpr std::size_t kShownBytes = 4;
constexpr std::size_t kShownFrom = 12;  // four characters would reveal too much of a shorter key
constexpr std::size_t kDigits = 12;
constexpr std::size_t kDigitsMin = 4;

// Returns the first characters without splitting one: bytes 10xxxxxx continue a UTF-8 character.
std::string_view start_of(std::string_view apikey) noexcept {
  if (apikey.size() < kShownFrom) return {};
  std::size_t size = kShownBytes;
  while (size > 0 && (static_cast<unsigned char>(apikey[size]) & 0xC0) == 0x80) --size;
  return apikey.substr(0, size);
}

// Returns the position of "…#", or npos if the text is not a handle.
std::size_t mark_of(std::string_view text) noexcept {
  const std::size_t mark = text.rfind(kMark);
  if (mark == text.npos || mark > kShownBytes) return text.npos;
  const std::string_view digits = text.substr(mark + kMark.size());
  const bool hex = std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && digits.size() >= kDigitsMin && digits.size() <= kDigestHexBytes ? mark : text.npos;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string full_handle_of(std::string_view hash_key, std::string_view apikey) {
  return std::string(start_of(apikey)).append(kMark).append(hashed_id(hash_key, apikey));
}

std::string handle_of(std::string_view hash_key, std::string_view apikey) {
  return shortened(full_handle_of(hash_key, apikey));
}

std::string shortened(std::string_view full) {
  return std::string(full.substr(0, full.size() - kDigestHexBytes + kDigits));
}

bool is_handle(std::string_view text) noexcept {
  return mark_of(text) != text.npos;
}

bool is_full_handle(std::string_view text) noexcept {
  const std::size_t mark = mark_of(text);
  return mark != text.npos && text.size() - mark - kMark.size() == kDigestHexBytes;
}

std::string_view shown_start(std::string_view handle) noexcept {
  return handle.substr(0, handle.rfind(kMark));
}

std::string shown_id(const Label& label, std::string_view hash_key) {
  if (!label.secret) return std::string(label.id);
  if (is_full_handle(label.id)) return shortened(label.id);
  const std::vector<std::string_view> sources = split(label.limiter_type, '+');
  if (sources.size() < 2) return handle_of(hash_key, label.id);
  const std::vector<std::string_view> parts = split(label.id, ':');
  // An IPv6 prefix contains colons, and callers may use other forms of ids: then the position of the key is unknown.
  if (parts.size() != sources.size()) return std::string(kMark).append(hashed_id(hash_key, label.id), 0, kDigits);
  std::string shown;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) shown += ':';
    shown += sources[i] == "apikey" ? handle_of(hash_key, parts[i]) : std::string(parts[i]);
  }
  return shown;
}

std::string shown_identifier(const Label& label, std::string_view hash_key) {
  return identifier_of(label, shown_id(label, hash_key));
}

}  // namespace weir
