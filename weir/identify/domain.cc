#include "weir/identify/domain.h"

#include <idn2.h>
#include <libpsl.h>

#include <algorithm>
#include <memory>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/identify/ip.h"
#include "weir/identify/quote.h"

namespace weir {
namespace {

Error not_a_domain(std::string_view name, std::string_view rule) {
  return Error{Fault::invalid, quoted_id(name) + " is not a domain: " + std::string(rule)};
}

Error too_long(std::string_view name) {
  return Error{Fault::too_large, quoted_id(name) + " is not a domain: it is longer than " +
                                     std::to_string(bounds::domain_bytes_max) + " bytes"};
}

struct Idn2Free {
  void operator()(void* text) const noexcept { idn2_free(text); }
};

// UTS #46 mapping (case, width, composition), then the IDNA2008 checks. Not IDN2_USE_STD3_ASCII_RULES: libidn2 2.3 then
// silently drops forbidden ASCII, so that "a_ü" would become "aü"; name_flaw() rejects it instead.
constexpr int kIdnFlags = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;

// Empty if the name or label has no A-label form.
std::string to_ascii(const std::string& utf8) {
  std::uint8_t* text = nullptr;
  const int code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(utf8.c_str()), &text, kIdnFlags);
  const std::unique_ptr<std::uint8_t, Idn2Free> owner(text);
  if (code != IDN2_OK || text == nullptr) return {};
  return reinterpret_cast<const char*>(text);
}

// RFC 5890 §2.3.2.1: an A-label is what the U-label it decodes to encodes to.
bool is_a_label(std::string_view label) {
  char* text = nullptr;
  const int code = idn2_to_unicode_8z8z(std::string(label).c_str(), &text, 0);
  const std::unique_ptr<char, Idn2Free> owner(text);
  return code == IDN2_OK && text != nullptr && to_ascii(text) == label;
}

// Returns the broken rule of a label in lower-case ASCII, or an empty view.
std::string_view label_flaw(std::string_view label) {
  if (label.empty()) return "a label is empty";
  if (label.size() > bounds::label_bytes_max) return "a label is longer than 63 bytes";
  if (label.front() == '-' || label.back() == '-') return "a label begins or ends with '-'";
  if (label.size() < 4 || label.substr(2, 2) != "--") return {};
  if (label.substr(0, 4) != "xn--") return "a label has \"--\" in third place, which is reserved";
  if (!is_a_label(label)) return "a label that begins with \"xn--\" is not a valid A-label";
  return {};
}

// Returns the broken rule of a name in lower-case ASCII, except for its length, or an empty view.
std::string_view name_flaw(std::string_view name) {
  const auto is_ldh = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  if (!std::all_of(name.begin(), name.end(), is_ldh)) return "only letters, digits, '-' and '.' are allowed";
  // Checked only for names that end in a digit, because most do not.
  if (name.back() >= '0' && name.back() <= '9' && IpAddress::parse(name)) return "it is an IP address";
  if (name.back() == '.') return "it must be written without the final '.'";
  const auto labels = static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')) + 1;
  if (labels < 2) return "it needs at least two labels, as in \"example.com\"";
  if (labels > bounds::domain_labels_max) return "it has more than 10 labels";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (const std::string_view flaw = label_flaw(name.substr(begin, end - begin)); !flaw.empty()) return flaw;
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<std::string> canonical_domain(std::string_view name) {
  if (name.empty()) return not_a_domain(name, "it is empty");
  // One byte of an A-label represents at most four bytes of UTF-8. Checked first, so that libraries get only short
  // input.
  if (name.size() > 4 * bounds::domain_bytes_max) return too_long(name);
  std::string ascii(name);
  const bool is_ascii = std::none_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; });
  if (is_ascii) {
    ascii = to_lower(name);
  } else {
    if (name.find('\0') != name.npos) return not_a_domain(name, "only letters, digits, '-' and '.' are allowed");
    ascii = to_ascii(ascii);
    if (ascii.empty()) return not_a_domain(name, "it is not a valid internationalized name (IDNA2008)");
  }
  if (ascii.size() > bounds::domain_bytes_max) return too_long(name);
  if (const std::string_view flaw = name_flaw(ascii); !flaw.empty()) return not_a_domain(name, flaw);
  return ascii;
}

Result<std::string> registered_domain(std::string_view name) {
  Result<std::string> domain = canonical_domain(name);
  if (!domain) return domain;
  const psl_ctx_t* suffixes = psl_builtin();  // static data of the library
  if (suffixes == nullptr) return Error{Fault::unavailable, "this build of libpsl has no Public Suffix List"};
  const char* registered = psl_registrable_domain(suffixes, domain->c_str());
  return registered == nullptr ? std::move(domain) : std::string(registered);
}

}  // namespace weir
