// Opening the state a process starts with, and closing it. Two files, each honest about what it survives:
//   live      a shared mapping, meant for tmpfs: survives kill -9 and upgrades. A clean end seals it with a checksum.
//   snapshot  written every few seconds (snapshot.h): survives a reboot and a loss of power.
// Either may be left out; without both, a restart forgets every bucket.
//
// What is taken, first match wins:
//   live, sealed                 checked by its checksum and taken, on whatever boot
//   live, unsealed, this boot    taken; each slot is checked, what was under way is undone
//   live, unsealed, other boot   not used: a disk file's pages were written back at different times
//   snapshot                     the time since it was written counts as refill; spends since then may be forgotten
//   nothing                      every bucket starts full
// A file that is torn, foreign or newer is refused with a sentence and kept aside (live_file.h), never half-read.
// max_buckets and names are those of the options: a live file made with others is rewritten, buckets and all.
//
// Time goes on where the file's stopped and never runs back: in the same boot by the boot's clock, otherwise by the
// wall clock, and one that went back counts as no time at all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/store/memory/live_file.h"
#include "weir/store/memory/table.h"

namespace weir {

struct StateOptions {
  std::string live;      // empty: the table lives in this process alone
  std::string snapshot;  // empty: none is looked for
  Table::Options table;
};

// Which boot of the machine this is, and its clocks. An argument, so that tests can reboot.
struct Boot {
  std::string id;   // different after each boot; empty: not known, and then no two are the same
  Duration uptime;  // CLOCK_BOOTTIME
  Wall wall;

  static Boot read();
};

struct OpenState {
  enum class Origin : unsigned char { nothing, sealed, recovered, snapshot };

  LiveFile file;  // outlives the table
  std::unique_ptr<Table> table;
  Duration boot_offset = Duration::zero();  // for BootClock
  Origin origin = Origin::nothing;
  bool forgetful = false;           // there was a state, and spends made under it may be forgotten
  std::vector<std::string> report;  // what happened, a sentence each

  // Closes the table cleanly and destroys it. REQUIRES: no other thread uses it. Without a live file, only destroys it.
  Result<void> seal(Now now);
};

Result<OpenState> open_state(const StateOptions& options, const Boot& boot = Boot::read());

}  // namespace weir
