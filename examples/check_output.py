"""Runs the examples against a small server; the first has to print what the README says."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

sample, http_example, readme = sys.argv[1], sys.argv[2], Path(sys.argv[3]).read_text(encoding="utf-8")
expected = re.search(r"^```cpp\n// Asks a model.*?^```\n\n```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL).group(1)
# The model of the first is `tinkxx/tiny`, whose tokens are bytes: no file is needed to know its tokenizer.
SEQUENCES = [{"stop_reason": "length", "tokens": list(line.encode())} for line in expected.splitlines()]
ANSWERS = {
    "client/config": {},
    "client/dynamic_config": {},
    "create_session": {"session_id": "s"},
    "create_sampling_session": {"sampling_session_id": "s:sample:0"},
    "asample": {"request_id": "r", "sample_sequence_ids": ["a", "b"]},
    "retrieve_future": {"sequences": SEQUENCES, "type": "sample"},
    "sessions/s/finish": {},
    "telemetry": {"status": "accepted"},
    "session_heartbeat": {},
    "healthz": {"status": "ok"},
    "get_server_capabilities": {"supported_models": [{"model_name": "org/tiny"}]},
}
SEEN = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        request = self.rfile.read(length)
        path = self.path.removeprefix("/api/v1/")
        SEEN.append((path, request))
        body = json.dumps(ANSWERS.get(path, {"detail": "Not Found"})).encode()
        self.send_response(200 if path in ANSWERS else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815 (the names are the library's)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
root = f"http://127.0.0.1:{server.server_port}"


def run(*command, key="tml-example", url=root):
    environment = {**os.environ, "TINKER_BASE_URL": url, "TINKER_API_KEY": key}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


good = run(sample, "tinkxx/tiny")
assert (good.returncode, good.stdout) == (0, expected), good
prompt = json.loads(dict(SEEN)["asample"])["prompt"]
assert bytes(prompt["chunks"][0]["tokens"]) == b"The capital of France is", prompt
assert json.loads(dict(SEEN)["sessions/s/finish"])["reason"] == {"type": "success"}
# An error goes to stderr and into the exit status: a wrong key is not worth another try.
bad = run(sample, key="no-such-prefix")
assert bad.returncode == 1 and bad.stdout == "" and "tml-" in bad.stderr, bad

plain = run(http_example, root)
assert plain.returncode == 0 and plain.stdout.splitlines() == [
    json.dumps(ANSWERS["healthz"]), json.dumps(ANSWERS["get_server_capabilities"])], plain
lost = run(http_example, f"{root}/elsewhere")
assert lost.returncode == 1 and "404" in lost.stderr, lost
print("the examples print what they should")
