"""A program on a terminal of its own: a real pseudo-terminal, and a screen that shows what a person would see."""

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

# Lines wrap at the edge, and the cursor is visible.
USUAL_MODES = {7, 25}
SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    """What the bytes of a program leave on a screen of so many columns and rows. Refuses bytes it does not know."""

    def __init__(self, columns, rows, lenient=False):
        self.lenient = lenient
        self.modes = set(USUAL_MODES)
        self.saved = None
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.scrolled = []

    def feed(self, text):
        """Returns what is incomplete at the end of the text."""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at < 16 and not self.lenient:
                        return text[at:]
                    self.unknown(text[at:at + 16])
                    at += 1
                    continue
                self.control(*found.groups())
                at = found.end()
            else:
                self.put(text[at])
                at += 1
        return ""

    def control(self, private, numbers, letter):
        values = [int(number) for number in numbers.split(";") if number]
        if private:
            self.mode(values[0], letter == "h")
        elif letter == "H":
            self.row, self.column = (values or [1])[0] - 1, (values + [1, 1])[1] - 1
        elif letter == "J" and values == [2]:
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif letter == "J":
            self.erase_line()
            for row in range(self.row + 1, self.rows):
                self.cells[row] = [" "] * self.columns
        elif letter == "K":
            self.erase_line()
        elif letter != "m":
            self.unknown(private + numbers + letter)

    def unknown(self, what):
        if not self.lenient:
            raise AssertionError(f"a terminal should not get {what!r}")

    def mode(self, number, on):
        (self.modes.add if on else self.modes.discard)(number)
        if number == 1049 and on:
            self.saved = (self.cells, self.row, self.column)
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif number == 1049 and self.saved:
            self.cells, self.row, self.column = self.saved

    def erase_line(self):
        # Behind the last character of a full line, the cursor is on that character.
        for column in range(min(self.column, self.columns - 1), self.columns):
            self.cells[self.row][column] = " "

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == self.rows:
                self.scrolled.append("".join(self.cells.pop(0)).rstrip())
                self.cells.append([" "] * self.columns)
                self.row -= 1
        elif ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0:
            self.unknown(character)
        elif self.column < self.columns:
            self.cells[self.row][self.column] = character
            self.column += 1
        elif 7 in self.modes:
            self.column = 0
            self.put("\n")
            self.put(character)

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines()).rstrip("\n")


class Terminal:
    """A program that runs on a pseudo-terminal until the test ends."""

    def __init__(self, test, words, columns=80, rows=24, env=None, lenient=False):
        """`lenient`: the program is not ours and may send what the screen does not know."""
        self.leader, self.follower = pty.openpty()
        self.screen = Screen(columns, rows, lenient)
        self.raw = b""
        self.rest = ""
        self.resize(columns, rows, tell=False)
        # As a shell leaves it: this is what must be there again in the end.
        self.before = termios.tcgetattr(self.follower)
        self.process = subprocess.Popen(words, stdin=self.follower, stdout=self.follower, stderr=self.follower,
                                        env=env, preexec_fn=self.take_terminal, close_fds=True)
        test.addCleanup(self.end)

    def take_terminal(self):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.leader)
        os.close(self.follower)

    def resize(self, columns, rows, tell=True):
        if tell:
            self.screen.resize(columns, rows)
        # The kernel sends SIGWINCH to the program.
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.leader, keys.encode())

    def read_some(self, seconds):
        if not select.select([self.leader], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.leader, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.raw += piece
        self.rest = self.screen.feed(self.rest + piece.decode(errors="surrogateescape"))
        return True

    def until(self, holds, seconds=30):
        """Reads until `holds(screen text)`: for readiness, never for a measured time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds(self.screen.text()):
                return self.screen.text()
            self.read_some(0.05)
        raise AssertionError(f"not within {seconds} s; the screen:\n{self.screen.text()}")

    def wait(self):
        """The exit status, after everything it wrote was read."""
        end = time.monotonic() + 30
        while self.process.poll() is None:
            self.read_some(0.02)
            if time.monotonic() > end:
                raise AssertionError(f"it does not end; the screen:\n{self.screen.text()}")
        while self.read_some(0.05):
            pass
        return self.process.returncode

    def restored(self):
        """Whether the terminal is as it was: modes of the line, screen, cursor, wrapping."""
        return termios.tcgetattr(self.follower) == self.before and self.screen.modes == USUAL_MODES

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)
