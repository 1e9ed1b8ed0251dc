// The terminal of a live view. Delivers keys one by one and signals as calls, and restores the terminal however the
// view ends (a key, Ctrl-C, SIGTERM, an error).
//
// Signals are blocked while it exists, and read on the loop. Create it before anything that starts threads.
#pragma once

#include <signal.h>
#include <termios.h>

#include <cstdint>
#include <string_view>

#include "weir/base/result.h"
#include "weir/cli/output.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"

namespace weir::cli {

class LiveTerminal {
 public:
  enum class Screen : unsigned char {
    own,     // the alternate screen: the view draws it whole, and nothing of it stays
    shared,  // lines scroll by and stay; the view has the last line
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void key(char key) = 0;
    // Draw again: the size has changed, or another program used the terminal.
    virtual void resized() = 0;
    // SIGINT, SIGTERM, SIGQUIT or SIGHUP, or 0: the terminal is gone. Stop the loop.
    virtual void interrupted(int signal) = 0;
  };

  LiveTerminal(Loop& loop, Output& out, Screen screen, Owner& owner);
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  // Returns a common size if the terminal does not know its own.
  ScreenSize size() const noexcept;
  // Restores the terminal. The destructor also does.
  void restore() noexcept;

 private:
  struct Keys final : Loop::Handler {
    explicit Keys(LiveTerminal& terminal_in) : terminal(terminal_in) {}
    void ready(std::uint32_t events) override;
    LiveTerminal& terminal;
  };
  struct Signals final : Loop::Handler {
    explicit Signals(LiveTerminal& terminal_in) : terminal(terminal_in) {}
    void ready(std::uint32_t events) override;
    LiveTerminal& terminal;
  };
  enum class KeyState : unsigned char { plain, escape, sequence };

  void enter() noexcept;
  void leave() noexcept;
  void suspend();
  void resume();
  void take_keys(std::string_view bytes);
  void stop_reading_keys() noexcept;

  Loop& loop_;
  Output& out_;
  Screen screen_;
  Owner& owner_;
  Keys keys_{*this};
  Signals signals_{*this};
  bool reads_keys_ = false;
  bool entered_ = false;
  KeyState key_state_ = KeyState::plain;
  termios before_{};
  sigset_t mask_before_{};
  Socket signal_file_;
};

// Returns the exit status of a live view that a signal interrupted. Ctrl-C is the usual way to leave; any other signal
// ends the process, as if it had not been caught. Call it after restore().
Exit exit_after(int signal);

}  // namespace weir::cli
