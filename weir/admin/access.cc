// The allow and the deny list: GET, POST and DELETE /ratelimit/access/{allow|deny}.
#include <array>
#include <functional>

#include "weir/admin/audit.h"
#include "weir/admin/background_reply.h"
#include "weir/admin/body.h"
#include "weir/admin/calls.h"
#include "weir/admin/key_search.h"
#include "weir/admin/known_change.h"
#include "weir/admin/target.h"
#include "weir/base/text.h"
#include "weir/config/values.h"
#include "weir/identify/handle.h"

namespace weir::admin {
namespace {

std::optional<AccessEntry::List> list_of(std::string_view word) {
  if (word == "allow") return AccessEntry::List::allow;
  if (word == "deny") return AccessEntry::List::deny;
  return {};
}

Reply no_such_list(std::string_view word) {
  return refuse(404, "not_found", "there is no list " + quote(word) + "; the lists are allow and deny");
}

// An API key is shown as its handle.
void write_entry(const Policy& policy, const AccessEntry& entry, JsonWriter& json) {
  json.begin_object().key("list").string(print(entry.list));
  if (entry.ip) {
    json.key("ip").string(entry.ip->bits() == entry.ip->address().width() ? entry.ip->address().print()
                                                                          : entry.ip->print());
  } else if (!entry.apikey.empty()) {
    json.key("apikey").string(policy.shown_apikey(entry.apikey));
  } else {
    json.key("limit").string(entry.limit);
    json.key("id").string(policy.shown_id(policy.find(entry.limit), entry.id));
  }
  json.key("reason").string(entry.reason).key("expires");
  entry.expires ? json.string(print_end(*entry.expires)) : json.null();
  json.key("added_by").string(entry.added_by);
  if (!entry.limit.empty() && policy.is_orphaned(entry.limit, entry.id, entry.hash_mark))
    json.key("in_force").boolean(false);
  json.end_object();
}

std::string text_of(const Policy& policy, const AccessEntry& entry) {
  std::string text;
  JsonWriter json(text);
  write_entry(policy, entry, json);
  return text;
}

// Returns the operators' entry in force for the same client, as JSON.
std::string entry_before(const KnownKeeper& keeper, const Policy& policy, const AccessEntry& entry, Wall wall) {
  for (const AccessEntry& other : keeper.entries(entry.list, wall)) {
    if (selector_of(other) == selector_of(entry)) return text_of(policy, other);
  }
  return {};
}

// The client of a call, as given.
struct ClientFields {
  std::string ip;
  std::string apikey;
  std::string limit;
  std::string id;

  bool any() const noexcept { return !ip.empty() || !apikey.empty() || !limit.empty() || !id.empty(); }
};

// Sets the client of the entry: exactly one of ip, apikey, or limit and id.
std::optional<Reply> name_client(const Policy& policy, const ClientFields& client, AccessEntry& entry) {
  const auto& [ip, apikey, limit, id] = client;
  const int kinds = (ip.empty() ? 0 : 1) + (apikey.empty() ? 0 : 1) + (limit.empty() && id.empty() ? 0 : 1);
  if (kinds != 1) return refuse(400, "bad_value", "an entry needs exactly one of ip, apikey, or limit and id");
  if (!ip.empty()) {
    const Result<IpPrefix> prefix = IpPrefix::parse(ip);
    if (!prefix) return refuse(400, "bad_value", "ip " + prefix.error().detail);
    entry.ip = *prefix;
  }
  if (apikey.starts_with("env:") || apikey.starts_with("file:")) {
    return refuse(400, "bad_value", "apikey: env: and file: are refused over the admin API; send the key itself");
  }
  entry.apikey = apikey;
  if (limit.empty() != id.empty()) return refuse(400, "bad_value", "limit and id must be given together");
  if (limit.empty()) return {};
  auto target = target_of(policy, limit, id);
  if (auto* reply = std::get_if<Reply>(&target)) return std::move(*reply);
  entry.limit = limit;
  entry.id = std::get<Target>(target).id;
  entry.hash_mark = policy.hash_mark(*std::get<Target>(target).limit);
  return {};
}

std::optional<Error> read_end(JsonValue object, Wall wall, AccessEntry& entry) {
  const auto lasts = duration_field(object, "for");
  if (!lasts) return lasts.error();
  const auto expires = text_field(object, "expires");
  if (!expires) return expires.error();
  if (*lasts && *expires) return Error{Fault::invalid, "give either for or expires, not both"};
  if (*lasts) {
    if (**lasts > bounds::window_max) return Error{Fault::invalid, "for must not be longer than 100 years"};
    entry.expires = std::chrono::ceil<std::chrono::milliseconds>(wall + **lasts);
  }
  if (*expires) {
    const Result<Wall> instant = config::parse_instant(**expires);
    if (!instant) return Error{Fault::invalid, "expires: " + instant.error().detail};
    if (*instant <= wall) return Error{Fault::invalid, "expires " + quote(**expires) + " is in the past"};
    entry.expires = *instant;
  }
  return {};
}

// Returns whether a deny entry matches the caller, by address or by an id of a limit keyed by address. Such an entry is
// refused.
bool hits_caller(const Policy& policy, const AccessEntry& entry, std::string_view peer) {
  const Result<IpAddress> address = IpAddress::parse(peer);
  if (entry.list != AccessEntry::List::deny || !address) return false;
  if (entry.ip) return entry.ip->contains(*address);
  const NamedLimit* const limit = policy.find(entry.limit);
  if (limit == nullptr || limit->id_kind == IdKind::shaped) return false;
  const auto own = policy.bucket_id(limit->name, peer);
  return own && *own == entry.id;
}

// An entry for an API key stores the key or its full handle. Uses the form of an existing entry, so that there is one
// entry per client, however it is named.
void use_stored_form(const Known& known, const std::string& key, const std::string& handle, Wall wall,
                     AccessEntry& entry) {
  for (const AccessList* const list : {&known.entries(), &known.blocks()}) {
    for (const std::string& form : {key, handle}) {
      const AccessEntry* found = nullptr;
      if (!entry.limit.empty()) {
        found = list->find_id(entry.list, {entry.limit, form}, wall);
      } else {
        found = is_full_handle(form) ? list->find_handle(entry.list, form, wall)
                                     : list->find_apikey(entry.list, form, wall);
      }
      if (found == nullptr) continue;
      (entry.limit.empty() ? entry.apikey : entry.id) = form;
      return;
    }
  }
}

using Act = std::function<Outcome(const std::shared_ptr<const Policy>& policy, const AccessEntry& entry)>;

// Sets the client of an entry in force whose limit was removed. Nothing is known of the limit's ids, so the id is as
// stored or as shown. Returns false if there is no such entry.
bool name_removed(const AdminShared& shared, const Policy& policy, const ClientFields& client, AccessEntry& entry,
                  Wall wall) {
  if (client.limit.empty() || policy.find(client.limit) != nullptr) return false;
  for (const AccessEntry& one : shared.keeper.entries(entry.list, wall)) {
    if (one.limit != client.limit || (one.id != client.id && policy.shown_id(nullptr, one.id) != client.id)) continue;
    entry.limit = one.limit;
    entry.id = one.id;
    return true;
  }
  return false;
}

// Calls `act` with the entry once its client is known. Searches for the key of a handle first. `removes`: the entry may
// be of a limit that the policy no longer has.
Outcome with_client(AdminShared& shared, const Request& request, const ClientFields& client, AccessEntry entry,
                    bool removes, const Act& act) {
  const std::shared_ptr<const Policy> policy = shared.reloader.policy();
  const Wall wall = request.now.wall;
  const bool by_key = !client.apikey.empty() && client.ip.empty() && client.limit.empty() && client.id.empty();
  std::optional<NamedByHandle> named;
  if (by_key && is_handle(client.apikey)) named = NamedByHandle{nullptr, client.apikey};
  if (client.ip.empty() && client.apikey.empty() && !client.limit.empty()) {
    named = named_by_handle(*policy, client.id, client.limit);
  }
  if (named) {
    entry.limit = client.limit;
    return find_key(shared, policy, std::move(*named), request.now,
                    [&shared, policy, entry, wall, act](const KnownKey& key) mutable {
                      (entry.limit.empty() ? entry.apikey : entry.id) = key.stored;
                      use_stored_form(*shared.keeper.known().current(), key.id, key.stored, wall, entry);
                      return act(policy, entry);
                    });
  }
  if (removes && name_removed(shared, *policy, client, entry, wall)) return act(policy, entry);
  if (auto refused = name_client(*policy, client, entry)) return std::move(*refused);
  const NamedLimit* const limit = policy->find(entry.limit);
  if (by_key || (limit != nullptr && limit->is_keyed_by_api_key())) {
    const std::string key = by_key ? entry.apikey : entry.id;
    const std::string handle = by_key ? policy->full_handle(key) : full_handle_of(policy->hash_key(), key);
    use_stored_form(*shared.keeper.known().current(), key, handle, wall, entry);
  }
  return act(policy, entry);
}

std::optional<Reply> read_entry(AdminShared& shared, const Request& request, ClientFields& client, AccessEntry& entry) {
  static constexpr std::array<std::string_view, 7> kFields = {"ip",     "apikey", "limit",  "id",
                                                              "reason", "for",    "expires"};
  std::optional<JsonValue> object;
  if (auto refused = read_object(shared, request, kFields, object)) return refused;
  std::array<std::string, 5> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto text = text_field(*object, kFields[i]);
    if (!text) return refuse(400, "bad_value", text.error().detail);
    texts[i] = std::move(*text).value_or("");
  }
  client = {texts[0], texts[1], texts[2], texts[3]};
  entry.reason = texts[4];
  entry.added_by = caller(request);
  if (const auto error = read_end(*object, request.now.wall, entry)) return refuse(400, "bad_value", error->detail);
  return {};
}

}  // namespace

Outcome list_entries(AdminShared& shared, const Request& request) {
  const auto list = list_of(request.parts[0]);
  if (!list) return no_such_list(request.parts[0]);
  const auto write = [list = *list, policy = shared.reloader.policy(), &keeper = shared.keeper,
                      wall = request.now.wall] {
    Reply reply;
    JsonWriter json(reply.content);
    json.begin_object().key("entries").begin_array();
    for (const AccessEntry& entry : policy->access().entries()) {
      if (entry.list == list && entry.live(wall)) write_entry(*policy, entry, json);
    }
    for (const AccessEntry& entry : keeper.entries(list, wall)) write_entry(*policy, entry, json);
    json.end_array().end_object();
    return reply;
  };
  return std::make_unique<BackgroundReply>(shared.background_tasks, write);
}

Outcome add_entry(AdminShared& shared, const Request& request) {
  const auto list = list_of(request.parts[0]);
  if (!list) return no_such_list(request.parts[0]);
  ClientFields client;
  AccessEntry read;
  read.list = *list;
  if (auto refused = read_entry(shared, request, client, read)) return std::move(*refused);
  return with_client(shared, request, client, std::move(read), false,
                     [&shared, wall = request.now.wall, peer = std::string(request.peer), word = request.parts[0]](
                         const std::shared_ptr<const Policy>& policy, const AccessEntry& entry) -> Outcome {
                       if (hits_caller(*policy, entry, peer))
                         return refuse(409, "conflict", "a deny entry must not match your own address, " + peer);
                       const auto before = std::make_shared<std::string>();
                       const std::string after = text_of(*policy, entry);
                       return std::make_unique<KnownChange>(
                           shared.background_tasks,
                           [&keeper = shared.keeper, policy, entry, wall, before](const KnownKeeper::Done& done) {
                             *before = entry_before(keeper, *policy, entry, wall);
                             keeper.add(entry, wall, done);
                           },
                           [&shared, who = entry.added_by, word, before, after](bool, Now now) {
                             audit(shared, who, now.wall, "access add", word, *before, after);
                             Reply reply;
                             reply.content = R"({"entries":[)" + after + "]}";
                             return reply;
                           });
                     });
}

Outcome remove_entry(AdminShared& shared, const Request& request) {
  const auto list = list_of(request.parts[0]);
  if (!list) return no_such_list(request.parts[0]);
  const Parameters& given = request.parameters;
  ClientFields client{std::string(given["ip"]), std::string(given["apikey"]), std::string(given["limit"]),
                      std::string(given["id"])};
  AccessEntry selector;
  // An API key may be sent in a body, not in a URL.
  if (!request.content.empty()) {
    ClientFields sent;
    if (auto refused = read_entry(shared, request, sent, selector)) return std::move(*refused);
    if (sent.any() && client.any()) {
      return refuse(400, "bad_value", "name the client in the query or in the content, not in both");
    }
    if (sent.any()) client = std::move(sent);
  }
  selector.list = *list;
  return with_client(shared, request, client, std::move(selector), true,
                     [&shared, wall = request.now.wall, who = std::string(caller(request)), word = request.parts[0]](
                         const std::shared_ptr<const Policy>& policy, const AccessEntry& entry) -> Outcome {
                       const auto before = std::make_shared<std::string>();
                       return std::make_unique<KnownChange>(
                           shared.background_tasks,
                           [&keeper = shared.keeper, policy, entry, wall, before](const KnownKeeper::Done& done) {
                             *before = entry_before(keeper, *policy, entry, wall);
                             keeper.remove(entry, wall, done);
                           },
                           [&shared, who, word, before](bool found, Now now) {
                             if (!found) {
                               return refuse(404, "not_found",
                                             "no such entry was added at run time; to remove an entry of the "
                                             "configuration, change the configuration");
                             }
                             audit(shared, who, now.wall, "access remove", word, *before, {});
                             Reply reply;
                             reply.content = R"({"removed":1})";
                             return reply;
                           });
                     });
}

}  // namespace weir::admin
