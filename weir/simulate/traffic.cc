#include "weir/simulate/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weir/base/text.h"
#include "weir/wire/json.h"

namespace weir::simulate {
namespace {

struct Page {
  std::string_view method;
  std::string_view path;
};
constexpr std::array kPages{Page{"GET", "/"},
                            Page{"GET", "/products"},
                            Page{"GET", "/products/42"},
                            Page{"GET", "/search?q=weir"},
                            Page{"GET", "/cart"},
                            Page{"POST", "/cart"},
                            Page{"GET", "/account"},
                            Page{"POST", "/checkout"},
                            Page{"POST", "/signin"},
                            Page{"GET", "/api/v1/items"},
                            Page{"POST", "/api/v1/orders"},
                            Page{"GET", "/static/app.js"},
                            Page{"GET", "/static/app.css"},
                            Page{"GET", "/static/logo.svg"}};
constexpr std::size_t kOpened = 8;  // pages that people open
constexpr std::size_t kSignin = 8;
constexpr std::size_t kApi = 9;      // and the next one
constexpr std::size_t kStatic = 11;  // and all after it
constexpr double kPeople = 20'000;
constexpr std::uint32_t kPrograms = 1u << 24;  // from here on, clients are programs
constexpr std::uint32_t kGuesser = (1u << 25) + 7;
constexpr std::uint32_t kCrawler = (1u << 25) + 66;

// 203.0.113.9 and its neighbors; every client has its own address.
std::string address_of(std::uint32_t client) {
  const std::uint32_t first = client >= (1u << 25) ? 203 : client >= kPrograms ? 198 : 100;
  const std::uint32_t rest = client & 0xff'ffff;
  const std::uint32_t second = first == 203 ? 0 : first == 198 ? 51 : 64 + (rest >> 16) % 64;
  const std::uint32_t third = first == 203 ? 113 : first == 198 ? 100 : rest >> 8 & 0xff;
  return std::to_string(first) + "." + std::to_string(second) + "." + std::to_string(third) + "." +
         std::to_string(rest & 0xff);
}

// "18/Nov/2026:05:26:32".
std::string clf(Wall wall) {
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::string text = print_instant(wall);
  const auto month = static_cast<std::size_t>(std::stoi(text.substr(5, 2)) - 1);
  return text.substr(8, 2) + "/" + std::string(months.substr(3 * month, 3)) + "/" + text.substr(0, 4) + ":" +
         text.substr(11, 8);
}

std::string milliseconds(Wall wall) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(wall).time_since_epoch().count() % 1000;
  return "." + std::to_string(1000 + ms).substr(1);
}

}  // namespace

Traffic::Traffic(LogFormat format, std::uint64_t seed, Wall start)
    : format_(format), random_(seed), start_(start), next_visit_(start) {}

void Traffic::add(Wall time, std::uint32_t client, std::size_t path) {
  hits_.push({time, order_++, client, static_cast<std::uint16_t>(path)});
}

// Adds a visit: about twelve per second, more at noon than at night.
void Traffic::begin_visit() {
  const auto after = [&](double seconds) {
    return next_visit_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  };
  const double kind = uniform();
  if (kind < 0.90) {
    // A few people visit often, many rarely.
    const auto person = static_cast<std::uint32_t>(std::pow(kPeople, uniform()));
    add(next_visit_, person, static_cast<std::size_t>(uniform() * kOpened));
    const int files = 2 + static_cast<int>(uniform() * 10);
    for (int i = 0; i < files; ++i) {
      add(after(0.1 + uniform() * 0.8), person, kStatic + static_cast<std::size_t>(uniform() * 3));
    }
  } else if (kind < 0.985) {
    const auto program = kPrograms + static_cast<std::uint32_t>(uniform() * 40);
    for (int i = 0; i < 20; ++i) add(after(i * 0.5), program, kApi + (uniform() < 0.2 ? 1 : 0));
  } else if (kind < 0.993) {
    for (int i = 0; i < 30; ++i) add(after(i * 0.4), kGuesser, kSignin);
  } else {
    for (int i = 0; i < 200; ++i) add(after(i * 0.02), kCrawler, static_cast<std::size_t>(uniform() * 4));
  }
  const double hour = std::chrono::duration<double, std::ratio<3600>>(next_visit_.time_since_epoch()).count();
  const double busy = 12 * (1 + 0.7 * std::cos((hour - 13) * 6.283185307179586 / 24));
  next_visit_ = after(-std::log(1 - uniform()) / busy);
}

void Traffic::write_line(std::string& out) {
  while (hits_.empty() || hits_.top().time >= next_visit_) begin_visit();
  const Hit hit = hits_.top();
  hits_.pop();
  write(hit, out);
}

void Traffic::write(const Hit& hit, std::string& out) {
  const Page& page = kPages[hit.path];
  const std::string ip = address_of(hit.client);
  const std::string request = std::string(page.method) + " " + std::string(page.path) + " HTTP/1.1";
  const std::string bytes = std::to_string(200 + hit.order % 7000);
  constexpr std::string_view agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
  switch (format_) {
    case LogFormat::combined:
      out.append(ip).append(" - - [").append(clf(hit.time)).append(" +0000] \"").append(request);
      out.append("\" 200 ").append(bytes).append(" \"-\" \"").append(agent).append("\"\n");
      return;
    case LogFormat::envoy:
      out.append("[").append(print_instant(std::chrono::floor<std::chrono::seconds>(hit.time)).substr(0, 19));
      out.append(milliseconds(hit.time)).append("Z] \"").append(request).append("\" 200 - 0 ").append(bytes);
      out.append(" 4 3 \"").append(ip).append("\" \"").append(agent).append("\" \"");
      out.append(std::to_string(hit.order)).append("\" \"shop.example\" \"10.0.0.2:8080\"\n");
      return;
    case LogFormat::haproxy:
      out.append(ip).append(":41234 [").append(clf(hit.time)).append(milliseconds(hit.time));
      out.append("] web shop/s1 0/0/1/3/4 200 ").append(bytes).append(" - - ---- 1/1/0/0/0 0/0 \"").append(request);
      out.append("\"\n");
      return;
    case LogFormat::json:
      break;
  }
  JsonWriter json(out);
  const std::int64_t since = std::chrono::floor<std::chrono::microseconds>(hit.time).time_since_epoch().count();
  json.begin_object().key("time").number(print_seconds(std::chrono::microseconds{since}));
  json.key("client").string(ip).key("method").string(page.method).key("host").string("shop.example");
  json.key("path").string(page.path).key("status").number(200).key("user_agent").string(agent).end_object();
  out += '\n';
}

}  // namespace weir::simulate
