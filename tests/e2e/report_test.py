"""The page that `weir simulate --output html` writes, in Chromium, light and dark."""

import re
import struct
import subprocess
import sys
import unittest
import zlib

from program import ProgramTest, weir

CONFIG = "limits: {per-ip: {key: ip, burst: %d, count: 10, period: 1s}, tenant: {key: header:x-tenant-id, rate: 1/s}}\n"
SCHEMES = {"light": ("1", (0xF6, 0xF7, 0xF9)), "dark": ("0", (0x11, 0x16, 0x1D))}


def first_pixel(png):
    """The color of the upper left corner of a PNG with 8 bits per channel."""
    data = b"".join(
        png[m.end() : m.end() + struct.unpack(">I", png[m.start() - 4 : m.start()])[0]] for m in re.finditer(b"IDAT", png)
    )
    # Whatever filter the first row has, there is nothing to the left of its first pixel and nothing above it.
    return tuple(zlib.decompressobj().decompress(data, 64)[1:4])


class Page(ProgramTest):
    def setUp(self):
        super().setUp()
        log = self.file("<b>access.log", weir("simulate", "--generate", "3000").stdout + "malformed\n")
        new = self.file("new.yaml", CONFIG % 3)
        old = self.file("weir.yaml", CONFIG % 20)
        done = weir("simulate", "--config", old, "--compare", new, log, "--output", "html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.page = self.file("report.html", done.stdout)

    def open(self, scheme, *flags):
        return subprocess.run(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                f"--user-data-dir={self.directory}/profile", "--window-size=1000,800",
                f"--blink-settings=preferredColorScheme={SCHEMES[scheme][0]}", *flags, f"file://{self.page}",
            ],
            capture_output=True, timeout=120, check=True,
        )  # fmt: skip

    def test_opens_without_errors_in_both_themes(self):
        for scheme, (_, color) in SCHEMES.items():
            picture = self.directory / f"{scheme}.png"
            done = self.open(scheme, f"--screenshot={picture}")
            self.assertNotIn(b"CONSOLE", done.stderr)
            self.assertEqual(first_pixel(picture.read_bytes()), color, scheme)

    def test_shows_the_plots_the_clients_and_what_is_not_judged(self):
        dom = self.open("light", "--dump-dom").stdout.decode()
        self.assertGreaterEqual(dom.count("<svg"), 2)
        self.assertIn("cannot judge limit tenant: the log has no header:x-tenant-id", dom)
        self.assertIn("ip:203.0.113.66", dom)
        self.assertIn("Newly denied", dom)
        self.assertIn("&lt;b&gt;access.log", dom)

    def test_needs_nothing_else(self):
        text = self.page.read_text()
        self.assertEqual(re.findall(r"https?://[^\s\"'<]+", text), [])
        self.assertNotIn("<script", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
