#include "bench/report.h"

#include <algorithm>
#include <iomanip>
#include <optional>
#include <sstream>
#include <utility>

namespace weir::bench {
namespace {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string short_name(Peer peer) {
  switch (peer) {
    case Peer::weir:
      return "Weir";
    case Peer::absl:
      return "absl flat_hash_map of std::string, 256 mutexes";
    case Peer::absl_inline:
      return "absl flat_hash_map, 256 mutexes";
    case Peer::boost:
      return "boost unordered_flat_map, 256 mutexes";
    case Peer::std_one_mutex:
      return "std unordered_map, 1 mutex";
    case Peer::tbb:
      return "tbb concurrent_hash_map";
    case Peer::naive:
      return "naive token bucket, 256 mutexes";
  }
  return "";
}

struct Where {
  std::uint64_t keys;
  bool text;
  Draw draw;
  int threads;
};

std::optional<Row> find(const Report& report, const Where& where, Peer peer, Mode mode) {
  for (const Row& row : report.rows) {
    if (row.keys == where.keys && row.text == where.text && row.draw == where.draw && row.threads == where.threads &&
        row.peer == peer && row.mode == mode) {
      return row;
    }
  }
  return std::nullopt;
}

std::string cell(const std::optional<Row>& row) {
  return row ? fixed(row->ns, row->ns < 100 ? 1 : 0) + " (" + fixed(row->allow, 2) + ")" : "–";
}

std::string ratio(const std::optional<Row>& ours, const std::optional<Row>& theirs) {
  return ours && theirs ? fixed(theirs->ns / ours->ns, 1) + "×" : "–";
}

std::vector<Where> places(const Report& report, bool text) {
  std::vector<Where> places;
  for (const Row& row : report.rows) {
    if (row.text != text) continue;
    const bool known = std::any_of(places.begin(), places.end(), [&](const Where& where) {
      return where.keys == row.keys && where.draw == row.draw && where.threads == row.threads;
    });
    if (!known) places.push_back({row.keys, text, row.draw, row.threads});
  }
  return places;
}

void print_decisions(const Report& report, bool text, std::ostream& out) {
  const std::vector<Where> all = places(report, text);
  if (all.empty()) return;
  std::vector<Peer> peers = text ? all_peers<Text>() : all_peers<Mixed>();
  peers.erase(peers.begin());
  out << "\n### "
      << (text ? "Decisions on 16-byte texts, hash and clock included" : "Decisions on hashes, clock included")
      << "\n\nns per decision and thread (share allowed); CPU time of one thread, wall time of two. Peers: clock each "
         "/ clock per 16; all but the one of "
         "std::string "
         "keep exactly 16 bytes. Last two columns: absl's time by ours, clock each by clock each and clock per 16 by "
         "batch, for each absl.\n\n"
      << "| keys | drawn | threads | Weir, clock each | Weir, clock per 16 | Weir, batch of 16 |";
  for (const Peer peer : peers) out << " " << short_name(peer) << " |";
  out << " single | batched |\n|---|---|---|---|---|---|";
  for (std::size_t i = 0; i < peers.size() + 2; ++i) out << "---|";
  out << "\n";
  for (const Where& where : all) {
    const auto row = [&](Peer peer, Mode mode) { return find(report, where, peer, mode); };
    out << "| " << name_of_count(where.keys) << " | " << name_of(where.draw) << " | " << where.threads << " |";
    for (const Mode mode : {Mode::clock_each, Mode::clock_per_16, Mode::batch_of_16})
      out << " " << cell(row(Peer::weir, mode)) << " |";
    for (const Peer peer : peers)
      out << " " << cell(row(peer, Mode::clock_each)) << " / " << cell(row(peer, Mode::clock_per_16)) << " |";
    for (const auto& [ours, theirs] :
         {std::pair{Mode::clock_each, Mode::clock_each}, std::pair{Mode::batch_of_16, Mode::clock_per_16}}) {
      out << " ";
      if (text) out << ratio(row(Peer::weir, ours), row(Peer::absl, theirs)) << " / ";
      out << ratio(row(Peer::weir, ours), row(Peer::absl_inline, theirs)) << " |";
    }
    out << "\n";
  }
}

void print_hot(const Report& report, std::ostream& out) {
  if (report.hot.empty()) return;
  out << "\n### Everyone asks for one key\n\nns per decision and thread (share allowed), clock each.\n\n"
      << "| | allowed, 1 thread | allowed, 2 threads | denied, 1 thread | denied, 2 threads |\n|---|---|---|---|---|\n";
  for (const Peer peer : all_peers<Text>()) {
    out << "| " << short_name(peer) << " |";
    for (const HotRow& row : report.hot) {
      if (row.peer == peer) out << " " << fixed(row.ns, 1) << " (" << fixed(row.allow, 2) << ") |";
    }
    out << "\n";
  }
}

void print_footprints(const Report& report, std::ostream& out) {
  if (report.footprints.empty()) return;
  out << "\n### Memory\n\n| buckets | names of 16 bytes | resident bytes per bucket | by the table's own count |\n"
         "|---|---|---|---|\n";
  for (const Footprint& point : report.footprints) {
    out << "| " << name_of_count(point.keys) << " | " << (point.names ? "yes" : "no") << " | "
        << fixed(point.resident, 1) << " | " << fixed(point.counted, 1) << " |\n";
  }
}

void print_growths(const Report& report, std::ostream& out) {
  if (report.growths.empty()) return;
  out << "\n### Longest request while growing from empty\n\nThread CPU time of one inserting thread, reading the time "
         "included; the control only touches fresh pages, one after the other, for as long as the growth took; where "
         "maintain() ran, beside as much memory made ready by another thread.\n\n"
         "| buckets | maintain() | mean | p99.9999 | longest | over 1 ms | control's longest |\n"
         "|---|---|---|---|---|---|---|\n";
  for (const Growth& growth : report.growths) {
    out << "| " << name_of_count(growth.keys) << " | " << (growth.maintained ? "another thread" : "never") << " | "
        << fixed(growth.mean_ns, 0) << " ns | " << fixed(growth.p999999_us, 0) << " µs | " << fixed(growth.max_us, 0)
        << " µs | " << growth.over_1ms << " | " << fixed(growth.control_max_us, 0) << " µs |\n";
  }
}

void add_speed_goals(const Report& report, std::vector<Goal>& goals) {
  const auto ns = [&](const Where& where, Peer peer, Mode mode) {
    const auto row = find(report, where, peer, mode);
    return row ? row->ns : 0;
  };
  for (const std::uint64_t keys : {std::uint64_t{1'000'000}, std::uint64_t{50'000'000}}) {
    const bool large = keys == 50'000'000;
    const std::string size = name_of_count(keys);
    for (const int threads : {1, 2}) {
      const Where where{keys, true, Draw::zipf, threads};
      const double single = ns(where, Peer::weir, Mode::clock_each);
      const double batch = ns(where, Peer::weir, Mode::batch_of_16);
      if (single == 0) continue;
      if (threads == 1) {
        const double floor = report.floor_ns.at(keys);
        goals.push_back({size + " keys, single: one random line + 60", "ns", single, floor + 60, true});
        goals.push_back({size + " keys, batch of 16", "ns", batch, large ? 140.0 : 70.0, true});
      }
      const bool two = threads == 2;
      for (const Peer peer : {Peer::absl, Peer::absl_inline}) {
        const double theirs = ns(where, peer, Mode::clock_each);
        if (theirs == 0) continue;
        const std::string against = size + " keys, " + std::to_string(threads) + (two ? " threads" : " thread") +
                                    ", against " + (peer == Peer::absl ? "absl of std::string" : "absl of 16 bytes");
        goals.push_back({against + ", single", "×", theirs / single, large ? 2.5 : two ? 3.0 : 1.8, false});
        goals.push_back({against + ", batched", "×", ns(where, peer, Mode::clock_per_16) / batch,
                         large ? 4.0
                         : two ? 5.0
                               : 3.5,
                         false});
      }
    }
    const double one = ns({keys, true, Draw::uniform, 1}, Peer::weir, Mode::clock_each);
    const double two = ns({keys, true, Draw::uniform, 2}, Peer::weir, Mode::clock_each);
    if (two != 0)
      goals.push_back({size + " keys, different keys: 2 threads against 1", "×", 2 * one / two, 1.8, false});
  }
}

void add_hot_goals(const Report& report, std::vector<Goal>& goals) {
  for (const bool allowed : {true, false}) {
    double one = 0;
    for (const HotRow& row : report.hot) {
      if (row.peer != Peer::weir || row.allowed != allowed) continue;
      if (row.threads == 1) one = row.ns;
      if (row.threads == 2) {
        goals.push_back({std::string("one key, ") + (allowed ? "allowed" : "denied") + ": 2 threads against 1", "×",
                         2 * one / row.ns, 0.5, false});
      }
    }
  }
}

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

}  // namespace

std::vector<Goal> goals_of(const Report& report) {
  std::vector<Goal> goals;
  add_speed_goals(report, goals);
  add_hot_goals(report, goals);
  for (const Footprint& point : report.footprints) {
    goals.push_back({name_of_count(point.keys) + " buckets" + (point.names ? " with 16-byte names" : "") + ", resident",
                     "bytes", point.resident, point.names ? 72.0 : 32.0, true});
  }
  for (const Growth& growth : report.growths) {
    // The control touches too few pages in a small run for its longest to mean something.
    if (!growth.maintained || growth.keys < 50'000'000) continue;
    const std::string size = "growing to " + name_of_count(growth.keys) + ", ";
    goals.push_back({size + "p99.9999", "µs", growth.p999999_us, 1000, true});
    goals.push_back({size + "longest: the control's", "µs", growth.max_us, growth.control_max_us, true});
  }
  return goals;
}

void print_markdown(const Report& report, std::ostream& out) {
  out << report.machine << "\n";
  print_decisions(report, true, out);
  print_decisions(report, false, out);
  if (std::any_of(report.rows.begin(), report.rows.end(), [](const Row& row) { return row.keys > kInterleavedMax; }))
    out << "\nUp to 10M keys all contestants are measured in turn, round by round; beyond, one after the other, each "
           "in "
           "a process of its own, because they do not fit in memory together.\n";
  print_hot(report, out);
  out << "\n### What it is made of\n\n| | ns |\n|---|---|\n| reading the clock | " << fixed(report.costs.clock_ns, 1)
      << " |\n| SipHash-1-3 of 16 bytes, many / each waits for the last | " << fixed(report.costs.siphash_ns, 1)
      << " / " << fixed(report.costs.siphash_latency_ns, 1) << " |\n";
  for (const auto& [keys, ns] : report.floor_ns)
    out << "| one dependent random line in the bytes of " << name_of_count(keys) << " buckets | " << fixed(ns, 1)
        << " |\n";
  print_footprints(report, out);
  print_growths(report, out);
  out << "\n### Goals\n\nZipf 0.99 on 16-byte texts unless it says otherwise.\n\n| what | measured | goal | "
         "|\n|---|---|---|---|\n";
  for (const Goal& goal : goals_of(report)) {
    const int digits = goal.unit == "µs" ? 0 : goal.unit == "×" ? 2 : 1;
    out << "| " << goal.what << " | " << fixed(goal.measured, digits) << " " << goal.unit << " | "
        << (goal.at_most ? "≤ " : "≥ ") << fixed(goal.bound, digits) << " | " << (goal.met() ? "met" : "**not met**")
        << " |\n";
  }
}

void print_json(const Report& report, std::ostream& out) {
  const char* separator = "";
  const auto begin = [&](const char* name) {
    out << ",\n " << quoted(name) << ": [";
    separator = "\n  ";
  };
  const auto next = [&]() -> std::ostream& {
    out << separator;
    separator = ",\n  ";
    return out;
  };
  const auto boolean = [](bool value) { return value ? "true" : "false"; };
  out << "{\"machine\": " << quoted(report.machine) << ",\n \"clock_ns\": " << report.costs.clock_ns
      << ", \"siphash_ns\": " << report.costs.siphash_ns
      << ", \"siphash_latency_ns\": " << report.costs.siphash_latency_ns;
  begin("dependent_line");
  for (const auto& [keys, ns] : report.floor_ns) next() << "{\"keys\": " << keys << ", \"ns\": " << ns << "}";
  out << "]";
  begin("decisions");
  for (const Row& row : report.rows) {
    next() << "{\"keys\": " << row.keys << ", \"key\": " << (row.text ? "\"text16\"" : "\"hash\"")
           << ", \"drawn\": " << quoted(name_of(row.draw)) << ", \"threads\": " << row.threads
           << ", \"contestant\": " << quoted(short_name(row.peer)) << ", \"mode\": " << quoted(name_of(row.mode))
           << ", \"ns\": " << row.ns << ", \"allowed\": " << row.allow << "}";
  }
  out << "]";
  begin("one_key");
  for (const HotRow& row : report.hot) {
    next() << "{\"contestant\": " << quoted(short_name(row.peer)) << ", \"threads\": " << row.threads
           << ", \"ns\": " << row.ns << ", \"allowed\": " << row.allow << "}";
  }
  out << "]";
  begin("memory");
  for (const Footprint& point : report.footprints) {
    next() << "{\"buckets\": " << point.keys << ", \"names\": " << boolean(point.names)
           << ", \"resident_bytes_per_bucket\": " << point.resident
           << ", \"counted_bytes_per_bucket\": " << point.counted << "}";
  }
  out << "]";
  begin("growth");
  for (const Growth& growth : report.growths) {
    next() << "{\"buckets\": " << growth.keys << ", \"maintained\": " << boolean(growth.maintained)
           << ", \"mean_ns\": " << growth.mean_ns << ", \"p999999_us\": " << growth.p999999_us
           << ", \"max_us\": " << growth.max_us << ", \"over_1ms\": " << growth.over_1ms
           << ", \"control_max_us\": " << growth.control_max_us << "}";
  }
  out << "]";
  begin("goals");
  for (const Goal& goal : goals_of(report)) {
    next() << "{\"what\": " << quoted(goal.what) << ", \"unit\": " << quoted(goal.unit)
           << ", \"measured\": " << goal.measured << ", \"" << (goal.at_most ? "at_most" : "at_least")
           << "\": " << goal.bound << ", \"met\": " << boolean(goal.met()) << "}";
  }
  out << "]}\n";
}

}  // namespace weir::bench
