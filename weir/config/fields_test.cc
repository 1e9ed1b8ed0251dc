// What the table promises about itself: every option is one row, and the row is enough.
#include "weir/config/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "weir/config/diff.h"
#include "weir/config/parse.h"
#include "weir/config/settings.h"

namespace weir::config::fields_test {
namespace {

// One line for every row for which `pick` is true, as a path.
template <class Pick>
std::string paths_where(std::span<const Field> fields, const std::string& above, Pick pick) {
  std::string out;
  for (const Field& field : fields) {
    const std::string path = above + std::string(field.name);
    if (pick(field)) out += path + "\n";
    if (field.member.open != nullptr) out += paths_where(field.fields, path + ".", pick);
  }
  return out;
}

TEST(Fields, EveryRowOfASectionOfSettingsFillsAMember) {
  const auto fills_none = [](const Field& field) {
    return field.member.set == nullptr && field.member.open == nullptr;
  };
  // These make the policy; forwarding.h reads the last four.
  EXPECT_EQ(paths_where(file_fields(), "", fills_none),
            "limits\nnames\noverrides\nroutes\naccess.allow\naccess.deny\nexternal\nenvoy\n"
            "backend\nbackend_tls\nerror_headers\npreflight\n");
}

TEST(Fields, TheRowSaysWhatTakesARestart) {
  EXPECT_EQ(paths_where(file_fields(), "", [](const Field& field) { return field.when == Applies::on_restart; }),
            "listen\nthreads\nstore\nmemory.max_buckets\nmemory.names\nstate.live\nstate.snapshot\nredis\ncache_redis\n"
            "proxy.backend_connections\n");
  EXPECT_EQ(paths_where(file_fields(), "", [](const Field& field) { return field.when == Applies::on_reload; }),
            "listen.token\nlisten.write_token\nlisten.idle_timeout\n");
  EXPECT_EQ(
      paths_where(file_fields(), "", [](const Field& field) { return field.when == Applies::to_new_connections; }),
      "listen.password\nlisten.write_password\nlisten.max_connection_age\n");
}

TEST(Fields, EveryRowHasASentence) {
  EXPECT_EQ(paths_where(file_fields(), "", [](const Field& field) { return !field.doc.ends_with('.'); }), "");
}

TEST(Fields, AReloadKeepsWhatTakesARestartAndChangesTheRest) {
  const auto settings_of = [](const std::string& yaml) { return std::get<Loaded>(parse(yaml, "t.yaml", {})).settings; };
  const Settings running = settings_of("");
  Settings next = settings_of(
      "threads: 3\nstore: redis\nmemory: {max_buckets: 7, names: false, cleanup: 1s}\n"
      "state: {live: /a, snapshot: /b, every: 1s}\nredis: {mode: cluster, tls: {enabled: true}}\nfailure_code: 503\n");
  keep_fixed(running, next);
  EXPECT_EQ(next.threads, running.threads);
  EXPECT_EQ(next.store, StoreKind::memory);
  EXPECT_EQ(next.memory.max_buckets, running.memory.max_buckets);
  EXPECT_TRUE(next.memory.names);
  EXPECT_EQ(next.memory.cleanup, std::chrono::seconds{1});
  EXPECT_EQ(next.state.live, "");
  EXPECT_EQ(next.state.snapshot, "");
  EXPECT_EQ(next.state.every, std::chrono::seconds{1});
  EXPECT_EQ(next.redis.mode, "single");
  EXPECT_FALSE(next.redis.tls.enabled);
  EXPECT_EQ(next.failure_code, 503);
}

}  // namespace
}  // namespace weir::config::fields_test
