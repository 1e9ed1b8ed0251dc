#include "weir/wire/http2_block.h"

#include <algorithm>
#include <memory>

namespace weir {
namespace {

constexpr std::size_t kTextKept = 4096;  // while no block is being decoded

}  // namespace

void Http2FieldRoom::clear() noexcept {
  more_.release();
  bytes_ = 0;
}

void* Http2FieldRoom::take(std::size_t bytes, std::size_t alignment) {
  if (bytes > bounds::http2_fields_bytes_max - bytes_) return nullptr;
  bytes_ += bytes;
  return more_.allocate(std::max<std::size_t>(bytes, 1), alignment);
}

void Http2Block::begin() noexcept {
  text_.clear();
  fields_.clear();
  list_bytes_ = regular_ = cookies_ = 0;
  is_head_ = too_large_ = false;
}

bool Http2Block::add(std::string_view name, std::string_view value) {
  const bool is_pseudo = name.starts_with(':');
  const bool is_cookie = name == "cookie";
  is_head_ = is_head_ || is_pseudo;
  if (!is_pseudo && !(is_cookie && cookies_ > 0)) ++regular_;
  if (is_cookie) ++cookies_;
  list_bytes_ += name.size() + value.size() + kHttp2FieldOverhead;
  if (list_bytes_ > bounds::http_head_bytes_max || regular_ > bounds::http_headers_max) too_large_ = true;
  if (too_large_) return list_bytes_ <= bounds::http2_list_bytes_max;
  text_.append(name).append(value);
  fields_.push_back({static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())});
  return true;
}

bool Http2Block::finish(Http2FieldRoom& room, std::span<const HttpHeader>& out) {
  bool fits = false;
  if (!too_large_) {
    char* const text = room.take<char>(text_.size());
    char* const cookies = room.take<char>(cookies_ > 1 ? text_.size() + 2 * cookies_ : 0);
    HttpHeader* const headers = room.take<HttpHeader>(fields_.size());
    fits = text != nullptr && cookies != nullptr && headers != nullptr;
    if (fits) copy(text, cookies, headers, out);
  }
  if (text_.capacity() > kTextKept) std::string().swap(text_);
  return fits;
}

void Http2Block::copy(char* text, char* cookies, HttpHeader* headers, std::span<const HttpHeader>& out) const {
  std::copy(text_.begin(), text_.end(), text);
  std::string_view rest(text, text_.size());
  std::size_t count = 0;
  std::size_t cookies_bytes = 0;
  HttpHeader* joined = nullptr;
  for (const Field& field : fields_) {
    const HttpHeader header{rest.substr(0, field.name_bytes), rest.substr(field.name_bytes, field.value_bytes)};
    rest.remove_prefix(field.name_bytes + field.value_bytes);
    const bool is_crumb = cookies_ > 1 && header.name == "cookie";
    if (!is_crumb || joined == nullptr) std::construct_at(&headers[count++], header);
    if (!is_crumb) continue;
    if (joined == nullptr) {
      joined = &headers[count - 1];
    } else {
      cookies_bytes += std::string_view("; ").copy(cookies + cookies_bytes, 2);
    }
    cookies_bytes += header.value.copy(cookies + cookies_bytes, header.value.size());
    joined->value = {cookies, cookies_bytes};
  }
  out = {headers, count};
}

const HttpHeader* find_http2_field(std::span<const HttpHeader> fields, std::string_view name) noexcept {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const HttpHeader& f) { return f.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

}  // namespace weir
