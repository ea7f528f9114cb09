"""Runs the official Python SDK against `tinkxx serve`.

    run.py PROGRAM SAME_CALLS VERSION CACHE [custom-loss]

PROGRAM is tinkxx, and SAME_CALLS the program of same_calls.cpp, which has to get the numbers that the SDK gets. The SDK is installed into an environment below CACHE, which is made if it is not
there and can be thrown away. Exit status 77: skipped, because no package can be installed here.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM, SAME_CALLS, VERSION, CACHE = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
OPTIONS = sys.argv[5:]
MODEL = "tinkxx/tiny"
HERE = Path(__file__).resolve().parent
# What the SDK imports. Its tokenizers would bring ten times as much, and are not used.
NEEDED = ["anyio", "click", "distro", "httpx[http2]", "numpy", "orjson", "protobuf", "pydantic", "pyqwest", "rich",
          "sniffio", "typing-extensions", "zstandard"]
SKIPPED = 77
# Losses of one's own are written in it, and the oldest release imports it.
TORCH = "custom-loss" in OPTIONS or VERSION.startswith("0.7.")


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def environment():
    """The Python of an environment with the SDK; None if it cannot be made."""
    folder = CACHE / f"tinker-{VERSION}{'-torch' if TORCH else ''}"
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # PyTorch is large: that of the system does, if there is one (Debian: python3-torch).
    owner = next((one for one in (sys.executable, "/usr/bin/python3") if TORCH and has_torch(one)), None)
    shared = ["--system-site-packages"] if owner else []
    made = subprocess.run([owner or sys.executable, "-m", "venv", *shared, str(folder)],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        print("SKIPPED: no Python environment can be made here; scripts/install-packages tests brings what is missing")
        print("\n".join((made.stdout + made.stderr).strip().splitlines()[-3:]))
        return None
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages in [[f"tinker=={VERSION}", "--no-deps"], NEEDED + (["torch"] if TORCH and not owner else [])]:
        done = subprocess.run(pip + packages, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            print(f"SKIPPED: tinker {VERSION} cannot be installed here (is the package index out of reach?)")
            print("\n".join(done.stderr.strip().splitlines()[-3:]))
            return None
    (folder / "complete").touch()
    return python


def numbers_of(command, client):
    """What a program of the same calls prints, as (name, numbers) lines."""
    done = subprocess.run(command, env=client, timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(line.split()[0], [float(word) for word in line.split()[1:]]) for line in done.stdout.splitlines()]


def compare(theirs, ours):
    assert len(theirs) == len(ours) > 10, (len(theirs), len(ours))
    for (name, one), (other_name, other) in zip(theirs, ours):
        near = len(one) == len(other) and all(abs(a - b) <= 1e-4 + 1e-5 * abs(a) for a, b in zip(one, other))
        assert name == other_name and near, f"{name}: the SDK got {one}, our client {other}"
    print(f"our client got the same in {len(ours)} lines of numbers")


python = environment()
if python is None:
    sys.exit(SKIPPED)

with tempfile.TemporaryDirectory() as home:
    serve = [PROGRAM, "serve", "--port", "0", "--json", "--home", home, "--api-key", "tml-interop"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = json.loads(server.stdout.readline())["url"]
            client = {name: value for name, value in os.environ.items()
                      if not name.startswith("TINKER") and not name.lower().endswith("_proxy")}
            client.update(TINKER_BASE_URL=url, TINKER_API_KEY="tml-interop")
            worked = subprocess.run([str(python), str(HERE / "workflow.py"), MODEL, *OPTIONS], env=client,
                                    timeout=600, check=False).returncode
            if worked == 0:
                compare(numbers_of([str(python), str(HERE / "same_calls.py"), MODEL], client),
                        numbers_of([SAME_CALLS, MODEL], client))
        finally:
            server.send_signal(signal.SIGTERM)
            ended = server.wait(timeout=60)
assert worked == 0, f"the workflow of tinker {VERSION} failed with {worked}"
assert ended == 0, f"tinkxx serve ended with {ended}"
