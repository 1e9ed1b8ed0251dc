// Visits every state that any interleaving of a case's threads can reach, and checks the properties in each. Test only.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "weir/store/memory/slot_model_state.h"
#include "weir/store/memory/slot_model_step.h"

namespace weir::slot_model {

struct Finding {
  const char* fault = nullptr;  // null: every property holds in every state
  bool complete = false;        // every state was visited
  std::size_t states = 0;
  std::size_t ends = 0;       // states in which every thread is done
  std::size_t evictions = 0;  // the most in one interleaving
  std::string trace;          // the shortest interleaving that leads to the fault, one step per line
};

// All states seen so far, in order of discovery, each once. Exact: states are compared by their bytes, not by their
// hash.
class Visited {
 public:
  Visited() : table_(1u << 16, 0) { states_.reserve(1u << 15); }

  std::size_t size() const { return states_.size(); }
  const State& operator[](std::size_t i) const { return states_[i]; }

  // Returns the state's number, and whether the state is new.
  std::pair<std::uint32_t, bool> add(const State& state) {
    if (states_.size() * 2 > table_.size()) grow();
    std::size_t at = hash(state) & (table_.size() - 1);
    for (; table_[at] != 0; at = (at + 1) & (table_.size() - 1)) {
      const std::uint32_t i = table_[at] - 1;
      if (std::memcmp(&states_[i], &state, sizeof(State)) == 0) return {i, false};
    }
    states_.push_back(state);
    table_[at] = static_cast<std::uint32_t>(states_.size());
    return {table_[at] - 1, true};
  }

 private:
  static std::size_t hash(const State& state) {
    std::array<std::uint64_t, sizeof(State) / 8> words;
    static_assert(sizeof(words) == sizeof(State));
    std::memcpy(words.data(), &state, sizeof(State));
    std::uint64_t h = 0;
    for (const std::uint64_t word : words) {
      h = (h ^ word) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    }
    return h;
  }

  void grow() {
    table_.assign(table_.size() * 2, 0);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      std::size_t at = hash(states_[i]) & (table_.size() - 1);
      while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<State> states_;
  std::vector<std::uint32_t> table_;  // number + 1; 0: empty
};

// Breadth first, so that traces are as short as possible. Stops at the first fault. REQUIRES: fewer than 2^31 states.
class Explorer {
 public:
  // `invariants` false: checks only the accounting, deadlock and livelock, so that a broken protocol is detected by the
  // harm it does and not by an intermediate state.
  // `states_max`: stops after this many states, and then does not check for livelocks.
  Explorer(const Case& scenario, const Protocol& protocol, bool invariants, std::size_t states_max)
      : case_(scenario), rules_(protocol), invariants_(invariants), states_max_(states_max) {}

  Finding run() {
    State start = case_.start;
    for (auto& page : start.pages) {
      for (Slot& slot : page) slot.word = slot.word == 0 ? Word{0} : make_word(rules_, slot.fp, slot.word & 0xffu);
    }
    for (std::size_t me = 0; me < case_.programs.size(); ++me) {
      Stepper(case_, rules_, start, me).begin(0);
      Stepper(case_, rules_, start, me).note_absence();
    }
    visited_.add(start);
    came_from_.push_back({0, 0});
    std::size_t next = 0;
    while (next < visited_.size() && visited_.size() < states_max_ && finding_.fault == nullptr) {
      expand(static_cast<std::uint32_t>(next++));
    }
    finding_.complete = next == visited_.size();
    if (finding_.fault == nullptr && finding_.complete) look_for_livelock();
    finding_.states = visited_.size();
    return std::move(finding_);
  }

 private:
  struct Edge {
    std::uint32_t from, to;
  };
  struct Origin {
    std::uint32_t state;
    std::uint32_t thread;
  };

  void expand(std::uint32_t i) {
    bool moved = false;
    bool ended = true;
    for (std::size_t me = 0; me < case_.programs.size(); ++me) {
      if (visited_[i].threads[me].pc == Pc::done) continue;
      ended = false;
      const std::size_t choices = visited_[i].threads[me].pc == Pc::take_page ? kPages : 1;
      for (std::size_t choice = 0; choice < choices; ++choice) moved = advance(i, me, choice) || moved;
      if (finding_.fault != nullptr) return;
    }
    if (ended) {
      ends_.push_back(i);
      ++finding_.ends;
      finding_.evictions = std::max<std::size_t>(finding_.evictions, visited_[i].evictions);
      report(fault_at_end(visited_[i]), i, kThreads);
    } else if (!moved) {
      report("deadlock: no thread can move", i, kThreads);
    }
  }

  bool advance(std::uint32_t i, std::size_t me, std::size_t choice) {
    State next = visited_[i];
    Stepper stepper(case_, rules_, next, me);
    if (!stepper.step(choice)) return false;
    for (std::size_t who = 0; who < case_.programs.size(); ++who) Stepper(case_, rules_, next, who).note_absence();
    const char* fault = stepper.fault();
    if (fault == nullptr && invariants_) fault = fault_anywhere(next);
    if (fault != nullptr) {
      report(fault, i, me);
      return true;
    }
    const auto [number, fresh] = visited_.add(next);
    if (fresh) came_from_.push_back({i, static_cast<std::uint32_t>(me)});
    edges_.push_back({i, number});
    return true;
  }

  // Returns how many slots that the record reaches hold this key now; stores the last one's TAT in `tat`.
  std::size_t live_slots(const State& state, std::size_t key, std::size_t& tat) const {
    std::size_t found = 0;
    const Group& group = state.groups[case_.group_of[key]];
    for (std::size_t p = 0; p < group.shape.pages(); ++p) {
      for (const Slot& slot : state.pages[group.pages[group.shape.bank()][p]]) {
        if (slot.fp != key || slot.word == 0 || is_busy(slot.word)) continue;
        const std::size_t its = tat_of(rules_, slot.word, key, case_.noise);
        if (its == 0) continue;  // evicted
        ++found;
        tat = its;
      }
    }
    return found;
  }

  const char* fault_anywhere(const State& state) const {
    std::size_t tat = 0;
    for (std::size_t key = 1; key < kKeys; ++key) {
      if (live_slots(state, key, tat) > 1) return "a key lives in two slots";
    }
    return nullptr;
  }

  static unsigned all_pages(const State& state) {
    unsigned pages = state.free_pages;
    for (const Group& group : state.groups) {
      for (std::size_t p = 0; p < group.shape.pages(); ++p) pages |= 1u << group.pages[group.shape.bank()][p];
    }
    return pages;
  }

  const char* fault_at_end(const State& state) const {
    unsigned pages = state.free_pages;
    for (const Group& group : state.groups) {
      if (group.lock != 0) return "a lock is held for ever";
      for (std::size_t p = 0; p < group.shape.pages(); ++p) {
        const unsigned bit = 1u << group.pages[group.shape.bank()][p];
        if ((pages & bit) != 0) return "a page is in use twice";
        pages |= bit;
      }
    }
    if (pages != all_pages(case_.start)) return "a page leaked";
    for (std::size_t key = 1; key < kKeys; ++key) {
      std::size_t tat = 0;
      const std::size_t found = live_slots(state, key, tat);
      if (found > 1) return "a key lives in two slots at the end";
      if (found == 1 && tat != state.truth[key]) return "a key's TAT is not what its acknowledged spends say";
      if (found == 0 && state.truth[key] >= std::max<Small>(state.horizon, 1)) return "a live bucket was forgotten";
    }
    return miscounted(state) ? "the buckets are miscounted" : nullptr;
  }

  bool miscounted(const State& state) const {
    std::size_t total = 0;
    for (const Group& group : state.groups) {
      std::size_t used = 0;
      std::size_t counted = 0;
      for (std::size_t p = 0; p < group.shape.pages(); ++p) {
        for (const Slot& slot : state.pages[group.pages[group.shape.bank()][p]]) {
          if (slot.word == 0) continue;
          ++used;
          if (tat_of(rules_, slot.word, slot.fp, case_.noise) != 0) ++counted;
        }
      }
      if (used != group.used || counted != group.counted) return true;
      total += counted;
    }
    return total != state.buckets;
  }

  // An end must be reachable from every state. From an endless spin none is.
  void look_for_livelock() {
    std::vector<std::uint32_t> first(visited_.size() + 1, 0);
    for (const Edge& edge : edges_) ++first[edge.to + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> sources(edges_.size());
    std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
    for (const Edge& edge : edges_) sources[fill[edge.to]++] = edge.from;
    std::vector<bool> ends_well(visited_.size(), false);
    std::vector<std::uint32_t> todo = ends_;
    for (const std::uint32_t end : ends_) ends_well[end] = true;
    while (!todo.empty()) {
      const std::uint32_t to = todo.back();
      todo.pop_back();
      for (std::uint32_t e = first[to]; e < first[to + 1]; ++e) {
        if (ends_well[sources[e]]) continue;
        ends_well[sources[e]] = true;
        todo.push_back(sources[e]);
      }
    }
    for (std::size_t i = 0; i < visited_.size(); ++i) {
      if (ends_well[i]) continue;
      report("livelock: the threads spin for ever", static_cast<std::uint32_t>(i), kThreads);
      return;
    }
  }

  // `me`: the thread of the last step, which led to no recorded state; kThreads: none.
  void report(const char* fault, std::uint32_t i, std::size_t me) {
    if (fault == nullptr || finding_.fault != nullptr) return;
    finding_.fault = fault;
    if (me < kThreads) finding_.trace = line(visited_[i], me);
    for (; i != 0; i = came_from_[i].state) {
      finding_.trace = line(visited_[came_from_[i].state], came_from_[i].thread) + finding_.trace;
    }
  }

  std::string line(const State& state, std::size_t me) const {
    const Thread& t = state.threads[me];
    return "  thread " + std::to_string(me) + " op " + std::to_string(t.op) + ": " + name(t.pc) + " page " +
           std::to_string(t.page) + " slot " + std::to_string(t.slot) + '\n';
  }

  const Case& case_;
  const Protocol& rules_;
  const bool invariants_;
  const std::size_t states_max_;
  Visited visited_;
  std::vector<Origin> came_from_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> ends_;
  Finding finding_;
};

inline constexpr std::size_t kStatesMax = std::size_t{1} << 31;

inline Finding explore(const Case& scenario, const Protocol& protocol, bool invariants = true,
                       std::size_t states_max = kStatesMax) {
  return Explorer(scenario, protocol, invariants, states_max).run();
}

}  // namespace weir::slot_model
