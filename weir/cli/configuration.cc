#include "weir/cli/configuration.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/net/http_url.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"

namespace weir::cli {
namespace {

config::Environment process_environment() {
  config::Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

// How many problems of one kind are printed; the rest is only counted.
constexpr std::size_t kOfAKind = 20;

// The sentence without its quoted texts and numbers: two problems with the same rest are of one kind.
std::string kind_of(std::string_view sentence) {
  std::string kind;
  bool quoted = false;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const char c = sentence[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
      kind += c;
    } else if (!quoted && (c < '0' || c > '9')) {
      kind += c;
    }
  }
  return kind;
}

bool names_https(const std::vector<std::string>& urls) {
  return std::ranges::any_of(urls, [](const std::string& text) {
    const Result<HttpUrl> url = HttpUrl::parse(text);
    return url && url->scheme == HttpUrl::Scheme::https;
  });
}

// Of the files in `backend_tls`, at the top level and in routes.
std::vector<std::string> doubt_backends(const config::Loaded& loaded, const std::filesystem::path& folder) {
  std::vector<std::string> sentences;
  const auto beside = [&](const std::string& file) { return file.empty() ? file : (folder / file).string(); };
  const Forwarding& all = loaded.settings.forwarding;
  const auto look_at = [&](const Forwarding& own, const std::string& where) {
    const BackendTls tls = own.tls.value_or(all.tls.value_or(BackendTls{}));
    if (tls == BackendTls{} || !names_https(own.backends.empty() ? all.backends : own.backends)) return;
    const auto made = TlsClient::make({beside(tls.ca_file), {beside(tls.cert_file), beside(tls.key_file)}, {}});
    if (!made) sentences.push_back(where + made.error().detail + "; a server would not start with it");
  };
  look_at(all, "backend_tls: ");
  for (const Route& route : loaded.policy->routes()) {
    if (!route.forwarding.tls && route.forwarding.backends.empty()) continue;  // the same as at the top level
    look_at(route.forwarding, "backend_tls of route " + quote(route.name) + ": ");
  }
  return sentences;
}

}  // namespace

std::vector<std::string> doubt_certificates(const config::Loaded& loaded, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> sentences = doubt_backends(loaded, folder);
  const auto doubt = [&](const std::string& section, const Error& error) {
    const auto place = std::ranges::find_if(
        loaded.origins, [&](const config::Setting& setting) { return setting.path.starts_with(section + "."); });
    sentences.push_back((place == loaded.origins.end() ? "" : place->origin + ": ") + error.detail +
                        "; a server would not start with it");
  };
  for (std::size_t i = 0; i < loaded.settings.listen.size(); ++i) {
    const std::vector<config::Tls>& tls = loaded.settings.listen[i].tls;
    for (std::size_t k = 0; k < tls.size(); ++k) {
      TlsServer::Options options;
      options.certificates = {{(folder / tls[k].cert).string(), (folder / tls[k].key).string()}};
      options.log = [&](LogLevel, std::string_view line) { sentences.emplace_back(line); };
      if (!tls[k].client_ca.empty()) options.client_ca = (folder / tls[k].client_ca).string();
      const auto made = TlsServer::make(std::move(options));
      const std::string section = "listen[" + std::to_string(i) + "].tls";
      const bool is_list = std::ranges::any_of(
          loaded.origins, [&](const config::Setting& setting) { return setting.path.starts_with(section + "["); });
      if (!made) doubt(is_list ? section + "[" + std::to_string(k) + "]" : section, made.error());
    }
  }
  const config::RedisTls& redis = loaded.settings.redis.tls;
  if (loaded.settings.store == config::StoreKind::redis && redis.enabled) {
    const auto made = TlsClient::make({redis.ca_file, {redis.cert_file, redis.key_file}, {}});
    if (!made) doubt("redis.tls", made.error());
  }
  const auto beside = [&](const std::string& file) { return file.empty() ? file : (folder / file).string(); };
  for (const NamedLimit& limit : loaded.policy->limits()) {
    if (limit.service == nullptr || !limit.service->tls) continue;
    const LimitsService& service = *limit.service;
    const auto made =
        TlsClient::make({beside(service.ca_file), {beside(service.cert_file), beside(service.key_file)}, {}});
    if (!made) sentences.push_back("external service of limit " + quote(limit.name) + ": " + made.error().detail);
  }
  return sentences;
}

std::vector<std::string> doubt_listeners(const config::Loaded& loaded) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < loaded.settings.listen.size(); ++i) {
    const config::Listener& listener = loaded.settings.listen[i];
    const auto speaks = [&](std::string_view word) {
      return std::ranges::find(listener.speak, word) != listener.speak.end();
    };
    const bool resp = speaks("resp");
    if (!resp && !speaks("http") && !speaks("grpc")) continue;
    const auto address = Address::parse(listener.address);
    if (!address || address->is_loopback()) continue;
    const bool asks = resp ? !listener.password.empty() : !listener.tokens.empty();
    const bool knows =
        !listener.tls.empty() && !listener.tls.front().client_ca.empty() && listener.tls.front().require_client;
    if (asks || knows) continue;
    const std::string path = "listen[" + std::to_string(i) + "].address";
    const auto place = std::ranges::find(loaded.origins, path, &config::Setting::path);
    sentences.push_back((place == loaded.origins.end() ? "" : place->origin + ": ") + "address " +
                        quote(listener.address) + " is not loopback and accepts calls without a secret: give it a " +
                        (resp ? "password" : "token") + ", or tls with client_ca");
  }
  return sentences;
}

std::vector<std::string> doubt_redis(const config::Loaded& loaded, std::span<const NamedLimit> limits) {
  std::vector<std::string> sentences;
  const auto has_service = [](const NamedLimit& limit) { return limit.service != nullptr; };
  if (loaded.settings.has_cache_redis && std::ranges::none_of(limits, has_service)) {
    sentences.emplace_back("cache_redis is not used: it caches the answers of external services, and there is none");
  }
  const auto chosen = std::ranges::find_if(loaded.origins, [](const config::Setting& setting) {
    return setting.path.starts_with("redis.") && setting.origin != "default";
  });
  if (loaded.settings.store == config::StoreKind::memory && chosen != loaded.origins.end()) {
    sentences.push_back(chosen->origin + ": redis is not used, because store is memory: set store: redis");
  }
  return sentences;
}

Result<Flags> read_flags(const Arguments& arguments) {
  Flags flags;
  for (const std::string& text : arguments.all("--set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{Fault::invalid, "--set " + quote(text) + " must be PATH=VALUE, such as redis.mode=cluster"};
    }
    const std::string path = text.substr(0, equals);
    if (!flags.emplace(path, text.substr(equals + 1)).second) {
      return Error{Fault::invalid, "--set " + path + " is given twice"};
    }
  }
  return flags;
}

config::Outcome load(const std::string& path, const Flags& flags) {
  config::Options options;
  options.environment = process_environment();
  options.flags = flags;
  options.made_hash_key = kOfflineHashKey;
  return config::load(path, options);
}

std::variant<config::Checked, config::Problems> check_to_serve(const std::string& path, config::Options options) {
  options.environment = process_environment();
  if (options.empty_before) options.pipe_patience = std::chrono::seconds{1};  // a reload is not typed into a terminal
  auto outcome = config::check(path, options);
  auto* const checked = std::get_if<config::Checked>(&outcome);
  if (checked == nullptr) return outcome;
  for (std::string& sentence : doubt_redis(checked->loaded, checked->parts.limits)) {
    checked->loaded.warnings.push_back(std::move(sentence));
  }
  return outcome;
}

void print_error(const config::Problems& problems, const std::string& path, Console& console) {
  struct Kind {
    std::string first;
    std::size_t count = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const config::Problem& problem : problems) {
    Kind& kind = kinds[kind_of(problem.sentence)];
    if (kind.count == 0) kind.first = problem.text();
    if (++kind.count <= kOfAKind) console.err.write(problem.text() + "\n");
  }
  for (const auto& [sentence, kind] : kinds) {
    if (kind.count <= kOfAKind) continue;
    console.err.write("... and " + std::to_string(kind.count - kOfAKind) + " more like " + kind.first + "\n");
  }
  console.print_error((path.empty() ? "the environment" : path) +
                      " is refused: " + counted(problems.size(), "problem"));
}

void warn(std::vector<std::string> warnings, Console& console) {
  for (auto warning = warnings.begin(); warning != warnings.end(); ++warning) {
    if (std::find(warnings.begin(), warning, *warning) != warning) continue;
    console.err.write(console.err.painted(Paint::yellow, "warning:") + " " + *warning + "\n");
  }
}

std::optional<config::Loaded> load_or_explain(const std::string& path, const Arguments& arguments, Console& console) {
  const Result<Flags> flags = read_flags(arguments);
  if (!flags) {
    console.print_error(flags.error().detail);
    return std::nullopt;
  }
  config::Outcome outcome = load(path, *flags);
  if (const auto* const problems = std::get_if<config::Problems>(&outcome)) {
    print_error(*problems, path, console);
    return std::nullopt;
  }
  return std::move(std::get<config::Loaded>(outcome));
}

Duration longest_idle(const Policy& policy) {
  Duration longest{};
  for (const NamedLimit& limit : policy.limits()) longest = std::max(longest, limit.idle_min);
  return longest;
}

std::string counted(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace weir::cli
