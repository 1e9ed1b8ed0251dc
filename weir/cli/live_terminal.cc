#include "weir/cli/live_terminal.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace weir::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

// Alternate screen, no cursor, no wrapping at the edge; then an empty screen.
constexpr std::string_view kEnterOwn = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
constexpr std::string_view kLeaveOwn = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kLeaveShared = "\r\x1b[K";

}  // namespace

LiveTerminal::LiveTerminal(Loop& loop, Output& out, Screen screen, Owner& owner)
    : loop_(loop), out_(out), screen_(screen), owner_(owner) {
  sigset_t all;
  sigemptyset(&all);
  for (const int signal : kSignals) sigaddset(&all, signal);
  pthread_sigmask(SIG_BLOCK, &all, &mask_before_);
  signal_file_ = Socket(signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC));
  if (signal_file_) static_cast<void>(loop_.watch(signal_file_.fd(), EPOLLIN, signals_));
  // Keys only where there is a keyboard: `weir top < /dev/null` has none.
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0)
    reads_keys_ = loop_.watch(STDIN_FILENO, EPOLLIN, keys_).has_value();
  enter();
}

LiveTerminal::~LiveTerminal() {
  restore();
}

ScreenSize LiveTerminal::size() const noexcept {
  ScreenSize size = out_.size();
  if (size.columns == 0) size.columns = 80;
  if (size.rows == 0) size.rows = 24;
  return size;
}

void LiveTerminal::enter() noexcept {
  entered_ = true;
  if (reads_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays: Ctrl-C and Ctrl-Z are signals
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  if (screen_ == Screen::own) out_.write(kEnterOwn);
  out_.flush();
}

void LiveTerminal::leave() noexcept {
  if (!entered_) return;
  entered_ = false;
  out_.write(screen_ == Screen::own ? kLeaveOwn : kLeaveShared);
  out_.flush();
  // Keys that were typed for the view are not for the shell.
  if (reads_keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

void LiveTerminal::restore() noexcept {
  if (!signal_file_) return;
  leave();
  stop_reading_keys();
  loop_.forget(signal_file_.fd(), signals_);
  signal_file_ = Socket();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void LiveTerminal::stop_reading_keys() noexcept {
  if (reads_keys_) loop_.forget(STDIN_FILENO, keys_);
  reads_keys_ = false;
}

// Ctrl-Z: gives the terminal back, sleeps, and takes it again. The signal itself stops the process, because the kernel
// discards it where no shell could wake us up.
void LiveTerminal::suspend() {
  leave();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  raise(SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  resume();
}

void LiveTerminal::resume() {
  enter();
  owner_.resized();
}

void LiveTerminal::Signals::ready(std::uint32_t) {
  signalfd_siginfo got{};
  while (terminal.signal_file_ && ::read(terminal.signal_file_.fd(), &got, sizeof got) == sizeof got) {
    const auto signal = static_cast<int>(got.ssi_signo);
    if (signal == SIGWINCH) {
      terminal.owner_.resized();
    } else if (signal == SIGTSTP) {
      terminal.suspend();
    } else if (signal == SIGCONT) {
      terminal.resume();
    } else {
      terminal.owner_.interrupted(signal);
    }
  }
}

void LiveTerminal::Keys::ready(std::uint32_t) {
  char bytes[256];
  const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (got > 0) return terminal.take_keys({bytes, static_cast<std::size_t>(got)});
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  terminal.stop_reading_keys();
  terminal.owner_.interrupted(0);
}

Exit exit_after(int signal) {
  if (signal == 0 || signal == SIGINT) return kOk;
  ::signal(signal, SIG_DFL);
  raise(signal);
  return kFailed;
}

// Arrows and other keys that send several bytes mean nothing here: their letters must not be taken for keys.
void LiveTerminal::take_keys(std::string_view bytes) {
  for (const char c : bytes) {
    switch (key_state_) {
      case KeyState::plain:
        if (c == '\x1b') {
          key_state_ = KeyState::escape;
        } else {
          owner_.key(c);
        }
        break;
      case KeyState::escape:
        key_state_ = c == '[' || c == 'O' ? KeyState::sequence : KeyState::plain;
        if (key_state_ == KeyState::plain && c != '\x1b') owner_.key(c);
        break;
      case KeyState::sequence:
        if (c >= 0x40 && c <= 0x7E) key_state_ = KeyState::plain;
        break;
    }
  }
}

}  // namespace weir::cli
