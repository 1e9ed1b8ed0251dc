// Opens and closes the state that a process starts with. There are two files:
//   live      a shared mapping, meant for tmpfs: survives kill -9 and upgrades. A clean exit seals it with a checksum.
//   snapshot  written every few seconds (snapshot.h): survives a reboot and a power loss.
// Either may be omitted. Without both, a restart forgets every bucket.
//
// Which state is used (first match wins):
//   live, sealed                 used if its checksum matches, from any boot
//   live, unsealed, this boot    used; each slot is checked, and unfinished operations are undone
//   live, unsealed, other boot   not used, because a disk file's pages were written back at different times
//   snapshot                     the time since it was written counts as refill; spends since then may be forgotten
//   nothing                      every bucket starts full
// A file that is damaged, not ours or from a newer version is refused with a message and set aside (live_file.h), never
// read in part.
// max_buckets and names come from the options. A live file made with other values is rewritten with all its buckets.
//
// Time continues from where the file's time stopped and never goes back. The time in between is measured by the boot
// clock within the same boot and otherwise by the wall clock; if the wall clock went back, it counts as zero.
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
  std::string live;      // empty: the table is only in this process
  std::string snapshot;  // empty: none
  Table::Options table;
};

// The current boot of the machine, and its clocks. Passed as an argument, so that tests can simulate a reboot.
struct Boot {
  std::string id;   // different after each boot; empty: unknown, which equals no other boot
  Duration uptime;  // CLOCK_BOOTTIME
  Wall wall;

  static Boot read();
};

struct OpenState {
  enum class Origin : unsigned char { nothing, sealed, recovered, snapshot };

  LiveFile file;  // must outlive the table
  std::unique_ptr<Table> table;
  Duration boot_offset = Duration::zero();  // for BootClock
  Origin origin = Origin::nothing;
  bool forgetful = false;           // there was a state, and some of its spends may be lost
  std::vector<std::string> report;  // what happened, one message each

  // Seals the live file, if there is one, and destroys the table. REQUIRES: no other thread uses the table.
  Result<void> seal(Now now);
};

Result<OpenState> open_state(const StateOptions& options, const Boot& boot = Boot::read());

}  // namespace weir
