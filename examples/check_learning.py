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
import urllib.request
from pathlib import Path

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


def check_own_loop(output):
    assert output.strip(), "no answer"


def check_quickstart(output):
    changed = re.search(r"(\d+) of 10 answers changed as asked", output)
    assert changed and int(changed.group(1)) >= 8, output
    assert "Saved as tinker://" in output and "\x1b" not in output and "\r" not in output, output


def check_rest(output):
    lines = output.splitlines()
    run, path = lines[0].split()[0], lines[1].split()[0]
    assert lines[0] == f"{run} tinkxx/tiny rank 4", lines
    assert lines[1] == f"tinker://{run}/sampler_weights/made sampler", lines
    names = [line.split()[0] for line in lines[2:]]
    assert "/adapter_model.safetensors" in "".join(name[len(FOLDER):] for name in names), lines
    for line in lines[2:]:
        name, size = line.split()[:2]
        assert Path(name).stat().st_size == int(size), line
    assert path and not Path(FOLDER + ".partial").exists()


def make_checkpoint(root):
    """Has the server save something, by what the API says."""
    def post(call, /, **body):
        request = urllib.request.Request(f"{root}/api/v1/{call}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json", "X-API-Key": "tml-local"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def result(promise):
        while True:
            answer = post("retrieve_future", request_id=promise["request_id"])
            if answer.get("type") != "try_again":
                return answer

    session = post("create_session", tags=[], sdk_version="0.36.0")["session_id"]
    model = result(post("create_model", session_id=session, model_seq_id=0, base_model="tinkxx/tiny",
                        lora_config={"rank": 4}))["model_id"]
    result(post("save_weights_for_sampler", model_id=model, path="made", seq_id=1))


def run(environment, *arguments):
    done = subprocess.run([EXAMPLE, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=500,
                          check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.returncode
    {"02_train": check_train, "03_reinforce": check_reinforce, "04_embedded": check_embedded,
     "06_rest": check_rest, "07_own_loop": check_own_loop, "08_asio": check_own_loop, "quickstart": check_quickstart}[NAME](done.stdout)


if NAME in ("04_embedded", "07_own_loop", "08_asio", "quickstart"):
    run({})
    sys.exit()
with tempfile.TemporaryDirectory() as home:
    command = [TINKXX, "serve", "--port", "0", "--json", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            root = json.loads(server.stdout.readline())["url"]
            FOLDER = f"{home}-fetched/weights"
            if NAME == "06_rest":
                make_checkpoint(root)
            run({"TINKER_BASE_URL": root, "TINKER_API_KEY": "tml-local"}, *([FOLDER] if NAME == "06_rest" else []))
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=60) == 0
