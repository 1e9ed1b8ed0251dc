// The commands between MULTI and EXEC, kept as the bytes the client sent. EXEC parses and runs them one after another;
// nothing is charged before that, and nothing at all if the connection ends first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"

namespace weir {

class Transaction {
 public:
  // True between MULTI and the end of EXEC or DISCARD.
  bool is_open() const noexcept { return open_; }
  // True if a command was refused while it was queued: EXEC must run none of them.
  bool is_aborted() const noexcept { return aborted_; }
  std::size_t commands() const noexcept { return commands_; }

  void open() noexcept {
    close();
    open_ = true;
  }
  // Queues one whole command. Returns false, and aborts the transaction, if a bound is reached.
  bool add(std::string_view command) {
    if (commands_ == bounds::resp_transaction_commands_max ||
        bytes_.size() + command.size() > bounds::resp_transaction_bytes_max) {
      abort();
      return false;
    }
    if (aborted_) return true;  // EXEC will run nothing: store nothing
    ++commands_;
    bytes_ += command;
    return true;
  }
  void abort() noexcept {
    aborted_ = true;
    bytes_.clear();
  }
  // EXEC may need several turns. done() skips the commands that have run; their bytes stay until close().
  bool is_running() const noexcept { return running_; }
  void run() noexcept { running_ = true; }
  std::string_view rest() const noexcept { return std::string_view(bytes_).substr(done_); }
  void done(std::size_t bytes) noexcept { done_ += bytes; }
  void close() noexcept {
    open_ = aborted_ = running_ = false;
    commands_ = done_ = 0;
    std::string().swap(bytes_);
  }

 private:
  bool open_ = false;
  bool aborted_ = false;
  bool running_ = false;
  std::size_t commands_ = 0;
  std::size_t done_ = 0;
  std::string bytes_;
};

}  // namespace weir
