#include "weir/simulate/log_run.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::simulate {
namespace {

constexpr std::uint8_t kUnwanted = 0xff;
constexpr std::uint64_t kProgressLines = 16384;

// A packed text: its size in two bytes, then its bytes. Text longer than any bounded line is cut.
void put(std::string_view text, std::string& out) {
  const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(text.size(), 0xffff));
  char bytes[sizeof size];
  std::memcpy(bytes, &size, sizeof size);
  out.append(bytes, sizeof size).append(text.substr(0, size));
}

std::string_view take(std::string_view& packed) {
  std::uint16_t size = 0;
  std::memcpy(&size, packed.data(), sizeof size);
  const std::string_view text = packed.substr(sizeof size, size);
  packed.remove_prefix(sizeof size + size);
  return text;
}

}  // namespace

LogRun::LogRun(std::vector<NamedPolicy> policies, std::vector<std::unique_ptr<LogInput>> inputs,
               const LogRunOptions& options)
    : inputs_(std::move(inputs)),
      options_(options),
      order_(options.window, options.spread, [this](Wall time, std::string_view packed) { ask(time, packed); }) {
  // A shell lists access.log, access.log.1 and access.log.2.gz in the wrong order.
  const auto first_time = [](const auto& input) { return input->first_time().value_or(Wall::max()); };
  for (auto next = inputs_.begin(); next != inputs_.end(); ++next) {  // a stable sort of a few items
    std::rotate(std::ranges::upper_bound(inputs_.begin(), next, first_time(*next), {}, first_time), next, next + 1);
  }
  Sight sight;
  for (const std::unique_ptr<LogInput>& input : inputs_) {
    input->add_to(sight);
    log_.files.emplace_back(input->name(), print(input->format()));
  }
  std::set<std::string, std::less<>> wanted;
  for (const NamedPolicy& named : policies) {
    wanted.merge(wanted_fields(*named.policy));
    replays_.push_back(std::make_unique<LogReplay>(named.name, named.policy, sight, options_.replay));
  }
  for (const std::string& name : wanted) {
    if (names_.size() < kUnwanted) names_.push_back(name);
  }
}

std::vector<std::string> LogRun::doubts() const {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < replays_.size(); ++i) {
    for (const Lack& lack : replays_[i]->lacks()) {
      std::string text = sentence(lack);
      if (std::ranges::find(sentences, text) == sentences.end()) sentences.push_back(std::move(text));
    }
  }
  return sentences;
}

std::size_t LogRun::bytes_all() const noexcept {
  std::size_t bytes = 0;
  for (const std::unique_ptr<LogInput>& input : inputs_) {
    if (input->size() == 0) return 0;
    bytes += input->size();
  }
  return bytes;
}

Result<Report> LogRun::run(const std::function<void(std::uint64_t, std::size_t)>& progress) {
  progress_ = progress;
  for (const std::unique_ptr<LogInput>& input : inputs_) {
    std::vector<std::uint8_t> fields;
    for (const std::string& field : input->reader().fields()) {
      const auto found = std::ranges::find(names_, field);
      fields.push_back(found == names_.end() ? kUnwanted : static_cast<std::uint8_t>(found - names_.begin()));
    }
    if (Result<void> done = read(*input, fields); !done) return done.error();
    bytes_before_ += input->size();
  }
  order_.finish();
  log_.hurried = order_.hurried();
  if (progress_) progress_(log_.lines, bytes_before_);
  Report report;
  report.tolerated_percent = options_.replay.tolerated_percent;
  report.log = log_;
  LogReplay::HitClients before;
  LogReplay::HitClients after;
  const bool compares = replays_.size() > 1;
  report.policy = replays_.front()->finish(compares ? &before : nullptr);
  if (compares) {
    report.comparison.emplace();
    report.comparison->other = replays_.back()->finish(&after);
    compare(report, before, after);
  }
  return report;
}

Result<void> LogRun::read(LogInput& input, std::span<const std::uint8_t> fields) {
  LogLine line;
  while (true) {
    const LogInput::Got got = input.next(line);
    if (got == LogInput::Got::end) return {};
    if (got == LogInput::Got::failed) {
      return Error{Fault::unavailable, "cannot read " + input.name() + ": " + input.why()};
    }
    if (++log_.lines % kProgressLines == 0 && progress_) progress_(log_.lines, bytes_before_ + input.bytes_read());
    std::string late;
    if (got == LogInput::Got::line) {
      pack(line, fields);
      log_.first = log_.first ? std::min(*log_.first, line.time) : line.time;
      log_.last = log_.last ? std::max(*log_.last, line.time) : line.time;
      if (order_.add(line.time, line.resolution, packed_)) continue;
      ++log_.late;
      late = "the line is more than " + print_duration(options_.window) + " late";
    } else {
      ++log_.malformed;
    }
    if (log_.shown.size() == bounds::log_malformed_shown) continue;
    log_.shown.push_back({input.name(), input.line_number(), late.empty() ? input.why() : late});
  }
}

void LogRun::pack(const LogLine& line, std::span<const std::uint8_t> fields) {
  packed_.assign(1, '\0');
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == kUnwanted || line.values[i].empty()) continue;
    ++packed_[0];
    packed_ += static_cast<char>(fields[i]);
    put(line.values[i], packed_);
  }
  if (line.route.empty() && line.counted.empty()) return;
  put(line.route, packed_);
  for (const NamedCharge& counted : line.counted) {
    put(counted.limit, packed_);
    put(counted.id, packed_);
    put(counted.tier, packed_);
    put({reinterpret_cast<const char*>(&counted.cost), sizeof counted.cost}, packed_);
  }
}

void LogRun::ask(Wall time, std::string_view packed) {
  attributes_.clear();
  counted_.clear();
  LoggedRequest request;
  const int fields = packed.front();
  packed.remove_prefix(1);
  for (int i = 0; i < fields; ++i) {
    const std::string& name = names_[static_cast<std::uint8_t>(packed.front())];
    packed.remove_prefix(1);
    attributes_.push_back({name, take(packed)});
  }
  if (!packed.empty()) request.route = take(packed);
  while (!packed.empty()) {
    NamedCharge counted{take(packed), take(packed)};
    counted.tier = take(packed);
    std::memcpy(&counted.cost, take(packed).data(), sizeof counted.cost);
    counted_.push_back(counted);
  }
  request.attributes = attributes_;
  request.counted = counted_;
  // Spreading may move a line past the time of the lines after it.
  last_ = std::max(last_, time);
  for (const std::unique_ptr<LogReplay>& replay : replays_) replay->ask(request, last_);
}

void LogRun::compare(Report& report, LogReplay::HitClients& before, LogReplay::HitClients& after) const {
  Comparison& comparison = *report.comparison;
  const auto only_in = [&](LogReplay::HitClients& these, const LogReplay::HitClients& others, std::uint64_t& count) {
    std::vector<HitClient> found;
    for (auto& [identifier, client] : these) {
      if (!others.contains(identifier)) found.push_back(std::move(client));
    }
    count = found.size();
    std::ranges::sort(found, [](const HitClient& a, const HitClient& b) {
      return a.counts.denied != b.counts.denied ? a.counts.denied > b.counts.denied : a.identifier < b.identifier;
    });
    found.resize(std::min(found.size(), options_.replay.hit_shown));
    return found;
  };
  comparison.newly_denied = only_in(after, before, comparison.newly_denied_clients);
  // The first call moved clients out of `after`, but its keys are still complete.
  comparison.spared = only_in(before, after, comparison.spared_clients);
}

}  // namespace weir::simulate
