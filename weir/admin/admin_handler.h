// The admin API as a handler of HTTP exchanges. In: whole requests. Out: replies, queries for the pipeline where a call
// needs a bucket, and event streams. router.cc lists the calls.
#pragma once

#include <optional>
#include <string_view>

#include "weir/admin/admin_shared.h"
#include "weir/admin/router.h"
#include "weir/admin/work.h"
#include "weir/http/whole.h"

namespace weir::admin {

class AdminHandler final : public http::WholeHandler {
 public:
  // `shared` must outlive the handler.
  explicit AdminHandler(AdminShared& shared) : shared_(shared) {}

  bool refuse(http::Exchange& exchange, const RequestHead& head) override;
  void request(http::Exchange& exchange, const RequestHead& head, std::string_view content) override;

  // Answers with the outcome, or goes on with it.
  void finish(http::Exchange& exchange, Outcome outcome);

 private:
  std::optional<Reply> refusal_of(const RequestHead& head, const RouteMatch& found) const;
  Outcome call(const RouteMatch& found, const RequestHead& head, std::string_view content, std::string_view peer);

  AdminShared& shared_;
};

}  // namespace weir::admin
