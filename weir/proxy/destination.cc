#include "weir/proxy/destination.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/net/tls.h"
#include "weir/wire/http1.h"

namespace weir::proxy {
namespace {

// "form:…" of every limit that a request of this route is charged by.
std::vector<std::string> form_fields_of(const Policy& policy, const Route* route) {
  std::vector<std::string> fields;
  const auto add = [&](const NamedLimit& limit) {
    for (const std::string& source : limit.key) {
      if (source.starts_with("form:") && std::ranges::find(fields, source) == fields.end()) fields.push_back(source);
    }
  };
  if (route != nullptr && !route->all_limits) {
    for (const std::uint32_t index : route->limits) add(policy.limits()[index]);
  } else if (route != nullptr || policy.routes().empty()) {
    for (const NamedLimit& limit : policy.limits()) add(limit);
  }
  return fields;
}

std::vector<std::string> decisive_headers_of(const Policy& policy) {
  std::vector<std::string> names{"x-api-key"};
  const auto add = [&](std::string_view source) {
    constexpr std::string_view kHeader = "header:";
    if (source.starts_with(kHeader)) names.push_back(to_lower(source.substr(kHeader.size())));
  };
  for (const NamedLimit& limit : policy.limits()) {
    for (const std::string& source : limit.key) add(source);
    add(limit.tier_source);
  }
  for (const Route& route : policy.routes()) {
    add(route.cost_header);
    for (const auto& [name, value] : route.match.headers) add(name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The route's fields, then those of the whole configuration that it does not set.
std::string error_lines_of(const Forwarding& own, const Forwarding& all) {
  std::string lines;
  for (const auto& [name, value] : own.error_headers) write_field(name, value, lines);
  for (const auto& [name, value] : all.error_headers) {
    const bool set = std::ranges::any_of(own.error_headers, [&](const auto& mine) { return mine.first == name; });
    if (!set) write_field(name, value, lines);
  }
  return lines;
}

// The host of "localhost:8443" or "[::1]:8443", as written: a target may have another word for it.
std::string host_of_authority(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

std::string version_of(const std::string& path) {
  if (path.empty()) return "\n";
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return path + "\n" + (error ? "" : std::to_string(time.time_since_epoch().count())) + "\n";
}

}  // namespace

http::Origin Backend::upgrade_origin() const {
  http::Origin made = origin;
  if (upgrade_tls != nullptr) made.tls = upgrade_tls;
  made.version = http::HttpVersion::http1;
  return made;
}

Result<std::shared_ptr<const TlsClient>> TlsClients::get(const BackendTls& tls, Offer offer) {
  const auto beside = [&](const std::string& file) {
    return file.empty() ? file : (std::filesystem::path(folder_) / file).string();
  };
  TlsClient::Options options{beside(tls.ca_file), {beside(tls.cert_file), beside(tls.key_file)}, {"http/1.1"}};
  if (offer == Offer::any_version) options.protocols.insert(options.protocols.begin(), "h2");
  const std::string key = options.protocols.front() + "\n" + version_of(options.ca_file) +
                          version_of(options.own.cert) + version_of(options.own.key);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const TlsClient>& made = made_[key];
  if (made == nullptr) {
    Result<std::unique_ptr<TlsClient>> client = TlsClient::make(options);
    if (!client) return client.error();
    made = std::move(*client);
  }
  return made;
}

Result<Backend> make_backend(const std::string& url, const BackendTls& tls, TlsClients& clients) {
  Result<HttpUrl> parsed = HttpUrl::parse(url);
  if (!parsed) return parsed.error();
  Backend backend;
  backend.name = url;
  backend.origin.target = parsed->target;
  backend.authority = std::move(parsed->authority);
  backend.path = std::move(parsed->path);
  switch (parsed->scheme) {
    case HttpUrl::Scheme::http:
      backend.origin.version = http::HttpVersion::http1;
      break;
    case HttpUrl::Scheme::h2:
      backend.origin.version = http::HttpVersion::http2;
      break;
    case HttpUrl::Scheme::https: {
      backend.scheme = "https";
      backend.origin.version = http::HttpVersion::negotiate;
      auto client = clients.get(tls, TlsClients::Offer::any_version);
      auto upgrade_client = clients.get(tls, TlsClients::Offer::http1);
      if (!client) return Error{client.error().fault, "backend " + url + ": " + client.error().detail};
      if (!upgrade_client) return upgrade_client.error();
      backend.origin.tls = std::move(*client);
      backend.upgrade_tls = std::move(*upgrade_client);
      backend.origin.server_name = tls.server_name.empty() ? host_of_authority(backend.authority) : tls.server_name;
      break;
    }
  }
  return backend;
}

Destinations::Destinations(const config::Loaded& loaded, Upstreams& upstreams, TlsClients& clients,
                           ProxyMetrics& metrics, const std::function<void(LogLevel, std::string_view)>& log)
    : policy_(loaded.policy), limits_(loaded.settings.proxy), no_route_(metrics.route("")) {
  const Forwarding& all = loaded.settings.forwarding;
  error_lines_ = error_lines_of({}, all);
  decisive_headers_ = decisive_headers_of(*policy_);
  const auto make = [&](const Route* route) {
    const Forwarding& own = route == nullptr ? all : route->forwarding;
    Destination made;
    if (route != nullptr) made.route = route->name;
    const std::vector<std::string>& urls = own.backends.empty() ? all.backends : own.backends;
    const BackendTls tls = own.tls.value_or(all.tls.value_or(BackendTls{}));
    std::vector<std::string> names;
    for (const std::string& url : urls) {
      Result<Backend> backend = make_backend(url, tls, clients);
      if (!backend) {
        log(LogLevel::error, backend.error().detail);
        continue;
      }
      made.backends.push_back(std::move(*backend));
      names.push_back(url);
    }
    made.group = upstreams.group(names);
    made.response_timeout = own.response_timeout.value_or(limits_.response_timeout);
    made.stream_idle_timeout = own.stream_idle_timeout.value_or(limits_.stream_idle_timeout);
    made.body_max = static_cast<std::uint64_t>(own.body_max.value_or(limits_.body_max));
    made.backend_host = own.backend_host;
    made.preflight_passes = own.preflight_passes.value_or(all.preflight_passes.value_or(false));
    made.error_lines = error_lines_of(own, all);
    made.form_fields = form_fields_of(*policy_, route);
    made.counters = &metrics.route(made.route);
    return made;
  };
  for (const Route& route : policy_->routes()) routes_.push_back(make(&route));
  rest_ = make(nullptr);
}

const Destination* Destinations::find(const Route* route) const noexcept {
  const Destination& found =
      route == nullptr ? rest_ : routes_[static_cast<std::size_t>(route - policy_->routes().data())];
  return found.backends.empty() && !policy_->has_services() ? nullptr : &found;
}

}  // namespace weir::proxy
