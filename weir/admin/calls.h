// Every call of the admin API, as listed in router.cc and described in docs/admin-api.md.
#pragma once

#include <memory>

#include "weir/admin/admin_shared.h"
#include "weir/admin/request.h"
#include "weir/admin/work.h"

namespace weir::admin {

Outcome healthz(AdminShared& shared, const Request& request);
Outcome readyz(AdminShared& shared, const Request& request);
Outcome startz(AdminShared& shared, const Request& request);
Outcome metrics(AdminShared& shared, const Request& request);
Outcome stats(AdminShared& shared, const Request& request);

Outcome list_clients(AdminShared& shared, const Request& request);
Outcome show_client(AdminShared& shared, const Request& request);
Outcome top(AdminShared& shared, const Request& request);
Outcome reset_in_path(AdminShared& shared, const Request& request);
Outcome reset_in_body(AdminShared& shared, const Request& request);
Outcome watch_numbers(AdminShared& shared, const Request& request);
Outcome watch_events(AdminShared& shared, const Request& request);

Outcome list_adjustments(AdminShared& shared, const Request& request);
Outcome adjust_in_path(AdminShared& shared, const Request& request);
Outcome adjust_in_body(AdminShared& shared, const Request& request);
Outcome unadjust_in_path(AdminShared& shared, const Request& request);
Outcome unadjust_in_body(AdminShared& shared, const Request& request);

Outcome list_entries(AdminShared& shared, const Request& request);
Outcome add_entry(AdminShared& shared, const Request& request);
Outcome remove_entry(AdminShared& shared, const Request& request);

Outcome forget_answer(AdminShared& shared, const Request& request);

Outcome show_config(AdminShared& shared, const Request& request);
Outcome change_config(AdminShared& shared, const Request& request);
Outcome reload(AdminShared& shared, const Request& request);

Outcome dashboard_page(AdminShared& shared, const Request& request);
Outcome dashboard_asset(AdminShared& shared, const Request& request);

// Work whose reply is one sample of GET /ratelimit/live.
std::unique_ptr<Work> sample_numbers(AdminShared& shared);

}  // namespace weir::admin
