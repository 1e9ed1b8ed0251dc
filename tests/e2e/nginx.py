"""Debian's nginx for a test: a backend, or a proxy to compare with."""

import os
import shutil
import socket
import subprocess
import tempfile
import time


class Nginx:
    """One nginx, ended with the test. `server`: the directives of its one server, without `listen`."""

    def __init__(self, test, server, listen=""):
        self.directory = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, self.directory)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = os.path.join(self.directory, "nginx.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"""
daemon off; master_process off; pid {self.directory}/pid; error_log {self.directory}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {self.directory}/a; proxy_temp_path {self.directory}/b; fastcgi_temp_path {self.directory}/c;
  uwsgi_temp_path {self.directory}/d; scgi_temp_path {self.directory}/e;
  server {{
    listen 127.0.0.1:{self.port} {listen};
    {server}
  }}
}}
""")
        said = os.path.join(self.directory, "said")
        with open(said, "w", encoding="utf-8") as stderr:
            process = subprocess.Popen(["nginx", "-p", self.directory, "-c", config], stderr=stderr)
        test.addCleanup(process.wait)
        test.addCleanup(process.terminate)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        with open(said, encoding="utf-8") as log:
            raise AssertionError("nginx does not listen: " + log.read())
