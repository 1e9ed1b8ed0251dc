// The configuration at run time: GET and PUT /ratelimit/config, POST /ratelimit/reload. Reading a configuration may
// take a second, so it is a background task.
#include <atomic>

#include "weir/admin/audit.h"
#include "weir/admin/background_reply.h"
#include "weir/admin/calls.h"
#include "weir/base/text.h"
#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/wire/http.h"

namespace weir::admin {
namespace {

// A reply lists at most this many changes, and their number.
constexpr std::size_t kOverridesShown = 1000;

std::string version_text(std::uint64_t version, const std::vector<config::Change>& changes) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("policy_version").number(static_cast<std::int64_t>(version + 1));
  if (!changes.empty()) {
    constexpr std::size_t kChangesMax = 100;  // a log line lists only this many
    json.key("changes").begin_array();
    for (std::size_t i = 0; i < changes.size() && i < kChangesMax; ++i) json.string(changes[i].text());
    json.end_array().key("changed").number(static_cast<std::int64_t>(changes.size()));
  }
  json.end_object();
  return text;
}

// Returns all problems on one line, in the words of the configuration report.
std::string problems_text(const config::Problems& problems) {
  std::string out;
  for (const config::Problem& problem : problems) out += (out.empty() ? "" : "; ") + problem.text();
  return out;
}

class ConfigChange final : public Work {
 public:
  using Attempt = std::function<Reloader::Report(Reloader&)>;

  ConfigChange(AdminShared& shared, const Request& request, std::string action, Attempt attempt)
      : shared_(shared),
        who_(caller(request)),
        action_(std::move(action)),
        attempt_(std::move(attempt)),
        progress_(std::make_shared<Progress>()) {}

  std::optional<Outcome> advance(Now now, const Wake& wake) override {
    if (attempt_ && !start(wake)) return refuse(503, "unavailable", "too many reloads are waiting; try again later");
    if (!progress_->done.load(std::memory_order_acquire)) return {};
    if (!progress_->report.ok()) return refuse(400, "bad_value", problems_text(progress_->report.problems));
    audit(shared_, who_, now.wall, action_, {}, version_text(progress_->before, {}),
          version_text(progress_->after, progress_->report.changes));
    Reply reply;
    JsonWriter json(reply.content);
    json.begin_object().key("policy_version").number(static_cast<std::int64_t>(progress_->after + 1));
    json.key("changed").number(static_cast<std::int64_t>(progress_->report.changes.size()));
    json.key("needs_restart").begin_array();
    for (const std::string& path : progress_->report.needs_restart) json.string(path);
    json.end_array().end_object();
    return reply;
  }

 private:
  struct Progress {
    Reloader::Report report;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    std::atomic<bool> done{false};  // set after all other members are written
  };

  bool start(const Wake& wake) {
    const auto run = [progress = progress_, &reloader = shared_.reloader, attempt = std::exchange(attempt_, {}), wake] {
      progress->before = reloader.version();
      progress->report = attempt(reloader);
      progress->after = reloader.version();
      progress->done.store(true, std::memory_order_release);
      wake();
    };
    return shared_.background_tasks.run(run);
  }

  AdminShared& shared_;
  std::string who_;
  std::string action_;
  Attempt attempt_;  // until it has started
  std::shared_ptr<Progress> progress_;
};

Reply write_config(const Reloader& reloader) {
  const std::shared_ptr<const config::Loaded> loaded = reloader.current();
  Reply reply;
  JsonWriter json(reply.content);
  json.begin_object().key("policy_version").number(static_cast<std::int64_t>(reloader.version() + 1));
  json.key("settings").begin_array();
  for (const config::Setting& setting : config::in_force(*loaded, kOverridesShown)) {
    json.begin_object().key("path").string(setting.path).key("value").string(setting.value);
    json.key("source").string(setting.origin).end_object();
  }
  json.end_array().key("overrides").number(static_cast<std::int64_t>(loaded->policy->override_count())).end_object();
  return reply;
}

}  // namespace

Outcome show_config(AdminShared& shared, const Request&) {
  return std::make_unique<BackgroundReply>(shared.background_tasks,
                                           [&reloader = shared.reloader] { return write_config(reloader); });
}

Outcome change_config(AdminShared& shared, const Request& request) {
  config::Amendment amendment;
  if (same_word(request.content_type, "application/yaml")) {
    amendment.kind = config::Amendment::Kind::replace;
  } else if (request.content_type.empty() || same_word(request.content_type, "application/json")) {
    if (const auto read = shared.json.read(request.content); !read) return refuse(400, "bad_json", read.error().detail);
  } else {
    return refuse(415, "unsupported_media_type",
                  "the content must be application/json or application/yaml, not " + quote(request.content_type));
  }
  amendment.text = std::string(request.content);
  return std::make_unique<ConfigChange>(shared, request, "config",
                                        [amendment](Reloader& reloader) { return reloader.amend(amendment); });
}

Outcome reload(AdminShared& shared, const Request& request) {
  return std::make_unique<ConfigChange>(shared, request, "reload",
                                        [](Reloader& reloader) { return reloader.reload(); });
}

}  // namespace weir::admin
