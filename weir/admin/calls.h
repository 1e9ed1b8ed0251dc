// Every call of the admin API, as the router names them (docs/admin-api.md says what they do).
#pragma once

#include "weir/admin/front.h"
#include "weir/admin/request.h"
#include "weir/admin/work.h"

namespace weir::admin {

Outcome healthz(Front& front, const Request& request);
Outcome readyz(Front& front, const Request& request);
Outcome startz(Front& front, const Request& request);
Outcome metrics(Front& front, const Request& request);
Outcome stats(Front& front, const Request& request);

Outcome list_clients(Front& front, const Request& request);
Outcome show_client(Front& front, const Request& request);
Outcome top(Front& front, const Request& request);
Outcome reset_in_path(Front& front, const Request& request);
Outcome reset_in_body(Front& front, const Request& request);
Outcome watch_events(Front& front, const Request& request);

Outcome list_adjustments(Front& front, const Request& request);
Outcome adjust_in_path(Front& front, const Request& request);
Outcome adjust_in_body(Front& front, const Request& request);
Outcome unadjust_in_path(Front& front, const Request& request);
Outcome unadjust_in_body(Front& front, const Request& request);

Outcome list_entries(Front& front, const Request& request);
Outcome add_entry(Front& front, const Request& request);
Outcome remove_entry(Front& front, const Request& request);

Outcome show_config(Front& front, const Request& request);
Outcome change_config(Front& front, const Request& request);
Outcome reload(Front& front, const Request& request);

}  // namespace weir::admin
