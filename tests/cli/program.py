"""The program as a test runs it: its command line is `PROGRAM MODEL …`, which this reads.

MODEL is a folder with a model, which stands in for the one that is shipped: what it says is of no matter here.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

PROGRAM, MODEL = sys.argv[1], Path(sys.argv[2]).resolve()
FOLDER = tempfile.TemporaryDirectory()
MODELS = Path(FOLDER.name) / "models"
MODELS.mkdir()
(MODELS / "tiny").symlink_to(MODEL, target_is_directory=True)
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": FOLDER.name, "TINKXX_MODELS": str(MODELS), "TERM": "xterm"}
ENVIRONMENT.update({name: value for name, value in os.environ.items() if name.startswith("LD_")})


# Sanitizers map more memory than any limit allows.
SANITIZED = any(mark in Path(PROGRAM).read_bytes() for mark in (b"__asan_init", b"__tsan_init"))


def tinkxx(*arguments, before=None, inherited=(), **environment):
    """`before` runs in the new process, ahead of the program; `inherited` are files that it has open."""
    return subprocess.run([PROGRAM, *map(str, arguments)], env={**ENVIRONMENT, **environment}, capture_output=True,
                          text=True, timeout=60, check=False, preexec_fn=before, pass_fds=inherited)


def fresh(name):
    return tempfile.mkdtemp(prefix=name, dir=FOLDER.name)


@contextmanager
def serving(*arguments, **environment):
    """A server that answers; its `told` is what it wrote to stdout, and `errors()` to stderr after its end."""
    home = () if "--home" in arguments else ("--home", fresh("home"))
    command = [PROGRAM, "serve", "--port", "0", "--json", *home, *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
            command, env={**ENVIRONMENT, **environment}, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        line = server.stdout.readline()
        if not line:
            errors.seek(0)
            raise AssertionError(f"serve ended with {server.wait()}: {errors.read()}")
        server.told = json.loads(line)

        def end(number=signal.SIGTERM):
            begun = time.monotonic()
            server.send_signal(number)
            code = server.wait(timeout=60)
            server.took = time.monotonic() - begun
            errors.seek(0)
            return code, errors.read()

        server.end = end
        try:
            yield server
        finally:
            if server.poll() is None:
                server.kill()
