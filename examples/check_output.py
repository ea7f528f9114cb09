"""Runs the first example against a small server and compares what it prints with the README."""

import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

program, readme = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")
expected = re.search(r"^```cpp\n.*?^```\n\n```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL).group(1)
health, models = expected.splitlines()
ANSWERS = {"/api/v1/healthz": health, "/api/v1/get_server_capabilities": models}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802 (the name is the library's)
        body = ANSWERS.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def run(url):
    return subprocess.run([program, url], capture_output=True, text=True, timeout=60, check=False)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
root = f"http://127.0.0.1:{server.server_port}"

good = run(root)
assert (good.returncode, good.stdout) == (0, expected), good
# An error goes to stderr and into the exit status: 404 is not worth another try.
bad = run(f"{root}/elsewhere")
assert bad.returncode == 1 and bad.stdout == "" and "404" in bad.stderr, bad
print("the example prints what the README says")
