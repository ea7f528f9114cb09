"""Runs an example that learns, against `tinkxx serve` where it needs a server, and checks what it learnt.

    check_learning.py NAME EXAMPLE TINKXX
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

NAME, EXAMPLE, TINKXX = sys.argv[1:]


def check_train(output):
    lines = output.splitlines()
    losses = [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", output, re.MULTILINE)]
    assert len(losses) == 40 and losses[-1] < 0.1 * losses[0], losses
    assert lines[:2] == ["Q: What is the capital of Peru?", "A: Lima"], lines[:2]
    assert lines[-2:] == ["Q: What is the capital of Peru?", "A: Lima, of course!"], lines[-2:]


def check_reinforce(output):
    rewards = [float(reward) for reward in re.findall(r"mean reward (\S+)$", output, re.MULTILINE)]
    begin, end = sum(rewards[:5]) / 5, sum(rewards[-5:]) / 5
    assert len(rewards) == 30 and end > begin + 0.1, (begin, end)
    print(f"mean reward {begin:.2f} -> {end:.2f}")


def check_embedded(output):
    assert output == " I am a tiny model.\n", output


def check_quickstart(output):
    changed = re.search(r"(\d+) of 10 answers changed as asked", output)
    assert changed and int(changed.group(1)) >= 8, output
    assert "Saved as tinker://" in output and "\x1b" not in output and "\r" not in output, output


def run(environment):
    done = subprocess.run([EXAMPLE], env={**os.environ, **environment}, capture_output=True, text=True, timeout=500,
                          check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.returncode
    {"02_train": check_train, "03_reinforce": check_reinforce, "04_embedded": check_embedded,
     "quickstart": check_quickstart}[NAME](done.stdout)


if NAME in ("04_embedded", "quickstart"):
    run({})
    sys.exit()
with tempfile.TemporaryDirectory() as home:
    command = [TINKXX, "serve", "--port", "0", "--json", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            run({"TINKER_BASE_URL": json.loads(server.stdout.readline())["url"], "TINKER_API_KEY": "tml-local"})
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=60) == 0
