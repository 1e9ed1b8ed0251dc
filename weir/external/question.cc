#include "weir/external/question.h"

#include <algorithm>
#include <array>

#include "weir/base/ascii.h"
#include "weir/external/protobuf.h"
#include "weir/wire/json.h"

namespace weir::external {
namespace {

constexpr std::string_view kHeader = "header:";  // of attribute names

// They carry secrets; without an allow_list they are never sent. In lower case, like the names of attributes.
constexpr std::array<std::string_view, 8> kSensitive{
    "authorization",      "cookie",    "set-cookie",   "proxy-authorization",
    "proxy-authenticate", "x-api-key", "x-csrf-token", "x-xsrf-token"};

bool lists(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const std::string& one) { return equals_ignoring_case(one, name); });
}

// "x-tenant-id": "X-Tenant-Id".
std::string capitalized(std::string_view name) {
  std::string out;
  for (const char c : name) out += out.empty() || out.back() == '-' ? to_upper(c) : to_lower(c);
  return out;
}

// Returns how the header is called in the question; empty: it is not sent.
std::string sent_as(const LimitsService& service, std::string_view name) {
  if (!service.allow_list.empty()) {
    const auto found = std::ranges::find_if(service.allow_list,
                                            [&](const std::string& one) { return equals_ignoring_case(one, name); });
    return found == service.allow_list.end() ? std::string() : *found;
  }
  const bool sensitive = std::ranges::find(kSensitive, to_lower(name)) != kSensitive.end();
  return sensitive || lists(service.deny_list, name) ? std::string() : capitalized(name);
}

void add_header(std::string name, std::string_view value, ServiceQuestion& question) {
  const auto found = std::ranges::find(question.headers, name, [](const auto& header) { return header.first; });
  if (found == question.headers.end()) {
    question.headers.emplace_back(std::move(name), value);
  } else {
    found->second.append(", ").append(value);
  }
}

}  // namespace

ServiceQuestion make_question(const LimitsService& service, std::string_view key,
                              std::span<const Attribute> attributes) {
  ServiceQuestion question;
  question.key = key;
  for (const Attribute& attribute : attributes) {
    if (attribute.name == "method") question.method = attribute.value;
    if (attribute.name == "path") question.path = attribute.value.substr(0, attribute.value.find('?'));
    if (!attribute.name.starts_with(kHeader)) continue;
    std::string name = sent_as(service, attribute.name.substr(kHeader.size()));
    if (!name.empty()) add_header(std::move(name), attribute.value, question);
  }
  return question;
}

void write_json(const ServiceQuestion& question, std::string& out) {
  JsonWriter writer(out);
  writer.begin_object().key("key").string(question.key).key("headers").begin_object();
  for (const auto& [name, value] : question.headers) writer.key(name).string(value);
  writer.end_object().key("method").string(question.method).key("path").string(question.path).end_object();
}

// The field numbers of limits.proto.
void write_protobuf(const ServiceQuestion& question, std::string& out) {
  append_text_field(1, question.key, out);
  std::string entry;
  for (const auto& [name, value] : question.headers) {
    entry.clear();
    append_text_field(1, name, entry);
    append_text_field(2, value, entry);
    append_bytes_field(2, entry, out);
  }
  append_text_field(3, question.method, out);
  append_text_field(4, question.path, out);
}

}  // namespace weir::external
