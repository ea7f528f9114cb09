"""Runs the commands that talk to a server, against `tinkxx serve`.

    check_manage.py PROGRAM MODEL GUIDE

GUIDE is docs/cli.md, whose commands and outputs have to be true.
"""

import fcntl
import http.server
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest
from pathlib import Path

from api import Api
from program import ENVIRONMENT, PROGRAM, fresh, serving, tinkxx

GUIDE = Path(sys.argv[3])


def in_terminal(*arguments, width=80, asks=b"", given=b"", **environment):
    """The code of the program on a terminal of that width, and what it writes there. `given` is typed once it `asks`."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
                               env={**ENVIRONMENT, **environment}, start_new_session=True)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
        if given and asks in text:
            time.sleep(0.1)  # until it has turned the echo off
            os.write(master, given)
            given = b""
    os.close(master)
    return process.wait(timeout=60), text.decode().replace("\r\n", "\n")


class Manage(unittest.TestCase):
    """One server, with a run that has two checkpoints."""

    @classmethod
    def setUpClass(cls):
        cls.context = serving()
        cls.server = cls.context.__enter__()
        cls.environment = {"TINKER_BASE_URL": cls.server.told["url"], "TINKER_API_KEY": "tml-test"}
        api = Api(cls.server.told["port"])
        cls.session = api.session()
        cls.run_id = api.model(cls.session)
        for number, (path, name) in enumerate([("save_weights", "step-1"), ("save_weights_for_sampler", "final")]):
            made = api.post(path, {"model_id": cls.run_id, "path": name, "seq_id": number + 1})
            api.result(made)
        api.close()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    def good(self, *arguments, **environment):
        done = tinkxx(*arguments, **{**self.environment, **environment})
        self.assertEqual(done.returncode, 0, done)
        return done

    def answer(self, *arguments):
        done = self.good(*arguments, "--json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_lists_what_was_made(self):
        runs = self.answer("run", "list")
        # Downloads make runs of their own.
        self.assertIn(self.run_id, [run["training_run_id"] for run in runs["runs"]])
        self.assertEqual((runs["total"], runs["shown"]), (len(runs["runs"]), len(runs["runs"])))
        found = self.answer("checkpoint", "list")
        self.assertLessEqual({f"tinker://{self.run_id}/weights/step-1", f"tinker://{self.run_id}/sampler_weights/final"},
                             {one["tinker_path"] for one in found["checkpoints"]})
        self.assertIn(self.session, [one["session_id"] for one in self.answer("session", "list")["sessions"]])
        self.assertEqual([one["model_name"] for one in self.answer("model", "list")["models"]], ["tinkxx/tiny"])

    def test_knows_things_by_short_names(self):
        self.assertEqual(self.answer("run", "info", "@latest"), self.answer("run", "list", "--limit", "1")["runs"][0])
        self.assertEqual(self.answer("run", "info", self.run_id[:5])["training_run_id"], self.run_id)
        path = f"{self.run_id[:6]}/weights/step-1"
        self.assertEqual(self.answer("checkpoint", "info", path)["tinker_path"],
                         f"tinker://{self.run_id}/weights/step-1")
        self.assertIn(self.run_id, self.answer("session", "info", self.session[:8])["training_run_ids"])

    def test_changes_and_deletes(self):  # R-CLI-01, R-CLI-07
        copy = f"tinker://{self.run_id}/weights/step-2"
        api = Api(self.server.told["port"])
        api.result(api.post("save_weights", {"model_id": self.run_id, "path": "step-2", "seq_id": 3}))
        api.close()
        self.assertTrue(self.answer("checkpoint", "publish", copy)["public"])
        self.assertTrue(self.answer("checkpoint", "info", copy)["public"])
        self.assertFalse(self.answer("checkpoint", "unpublish", copy)["public"])
        self.good("checkpoint", "set-ttl", copy, "--ttl", "2h")
        self.assertIsNotNone(self.answer("checkpoint", "info", copy)["expires_at"])
        self.good("checkpoint", "set-ttl", copy, "--remove")
        self.assertIsNone(self.answer("checkpoint", "info", copy)["expires_at"])
        self.assertEqual(tinkxx("checkpoint", "delete", copy, **self.environment).returncode, 2)
        code, text = in_terminal("checkpoint", "delete", copy, asks=b"[y/N]", given=b"n\n", **self.environment)
        self.assertEqual(code, 0)
        self.assertIn("cancelled", text)
        self.assertEqual(self.answer("checkpoint", "delete", copy, "--yes")["deleted_count"], 1)
        gone = tinkxx("checkpoint", "info", copy, **self.environment)
        self.assertEqual((gone.returncode, gone.stdout), (1, ""))
        self.assertIn("not found", gone.stderr)

    def test_downloads(self):  # R-CLI-10, R-CLI-17
        folder = fresh("downloads")
        for kind, name in (("sampler_weights", "final"), ("weights", "step-1")):
            done = self.good("checkpoint", "download", f"{self.run_id}/{kind}/{name}", "-o", folder, "--json")
            told = json.loads(done.stdout)
            self.assertEqual(told["checkpoint_path"], f"tinker://{self.run_id}/{kind}/{name}")
            self.assertTrue(told["destination"].startswith(folder))
            for file in told["files"]:
                self.assertEqual((Path(told["destination"]) / file["name"]).stat().st_size, file["bytes"])
            self.assertIn("adapter_model.safetensors", [file["name"] for file in told["files"]])
            again = tinkxx("checkpoint", "download", f"{self.run_id}/{kind}/{name}", "-o", folder, **self.environment)
            self.assertEqual(again.returncode, 2)
            self.assertIn("--force", again.stderr)
        # The export of the second one is gone.
        kinds = {one["checkpoint_type"] for one in self.answer("checkpoint", "list", "--limit", "0")["checkpoints"]}
        self.assertNotIn("external", kinds)

    def test_samples(self):  # R-CLI-14
        told = self.answer("sample", "-m", f"{self.run_id[:6]}/sampler_weights/final", "--tokens", "1 2 3", "-n", "3",
                           "--max-tokens", "4", "--seed", "7")
        self.assertEqual(told["prompt_tokens"], [1, 2, 3])
        self.assertEqual(len(told["sequences"]), 3)
        for one in told["sequences"]:
            self.assertEqual(len(one["tokens"]), len(one["logprobs"]))
            self.assertAlmostEqual(one["average_logprob"], sum(one["logprobs"]) / len(one["logprobs"]), places=5)
        scores = self.answer("logprobs", "-m", "tinkxx/tiny", "--tokens", "[1,2,3]")
        self.assertEqual(scores["tokens"], [1, 2, 3])
        self.assertIsNone(scores["logprobs"][0])
        self.assertEqual(scores["scored_tokens"], 2)
        for wrong in (["--tokens", "1 x"], ["--tokens", '{"a":1}'], ["--prompt-file", "/nowhere"], [""],
                      ["--tokens", "-n", "0", "1"], ["a", "--prompt-file", "b"]):
            done = tinkxx("sample", "-m", "tinkxx/tiny", *wrong, **self.environment)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)

    def test_logs_in_and_out(self):  # R-CLI-15
        home = fresh("login")
        environment = {"HOME": home, "TINKER_BASE_URL": self.server.told["url"]}
        code, text = in_terminal("auth", "login", asks=b"Key: ", given=b"tml-typed\n", **environment)
        self.assertEqual(code, 0, text)
        self.assertNotIn("tml-typed", text)
        file = Path(home) / ".tinker/credentials.json"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(tinkxx("auth", "status", **environment).returncode, 0)
        self.assertEqual(tinkxx("run", "list", **environment).returncode, 0)
        self.assertEqual(tinkxx("auth", "logout", **environment).returncode, 0)
        done = tinkxx("auth", "status", **environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tinkxx auth login", done.stderr)

    def test_examines_the_way_to_the_server(self):
        told = self.answer("doctor")
        self.assertTrue(told["good"], told)
        self.assertLessEqual({"version", "key", "server", "round trip", "clock", "access", "disk", "cpu"},
                             {check["name"] for check in told["checks"]})
        done = tinkxx("doctor", "--base-url", "http://127.0.0.1:1", TINKER_API_KEY="tml-x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("problem  server", done.stdout)

    def test_fits_the_terminal(self):
        for width in (60, 80, 200):
            code, text = in_terminal("checkpoint", "list", width=width, **self.environment)
            self.assertEqual(code, 0, text)
            plain = re.sub("\x1b\\[[0-9;]*m", "", text)
            self.assertTrue(all(len(line) <= width for line in plain.splitlines()), plain)
            self.assertIn("Checkpoint", plain)
            self.assertIn("\x1b[1m", text)
            self.assertNotIn("\x1b", in_terminal("checkpoint", "list", NO_COLOR="1", **self.environment)[1])

    def test_is_quiet_when_nobody_reads_on(self):
        reading, writing = os.pipe()
        process = subprocess.Popen([PROGRAM, "checkpoint", "list", "--json"], stdout=writing, stderr=subprocess.PIPE,
                                   env={**ENVIRONMENT, **self.environment}, text=True)
        os.close(writing)
        os.close(reading)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(errors, "")
        self.assertIn(process.returncode, (0, -signal.SIGPIPE))

    def test_says_that_the_disk_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "run", "list", "--json"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env={**ENVIRONMENT, **self.environment}, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the output cannot be written", done.stderr)

    def test_ends_by_interrupt_with_130(self):  # R-CLI-08
        # A port that takes connections and never answers.
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as silent:
            process = subprocess.Popen([PROGRAM, "run", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**ENVIRONMENT, "TINKER_API_KEY": "tml-x",
                                            "TINKER_BASE_URL": f"http://127.0.0.1:{silent.server_port}"})
            silent.socket.settimeout(30)
            connection, _ = silent.socket.accept()  # it has begun
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=30), 130)
            connection.close()
            process.communicate()

    def test_refuses_a_page_in_place_of_an_answer(self):
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b"<html><body>It works!</body></html>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            environment = {"TINKER_BASE_URL": f"http://127.0.0.1:{server.server_port}", "TINKER_API_KEY": "tml-x"}
            for command in (["run", "list"], ["checkpoint", "list"], ["session", "list"], ["model", "list"],
                            ["billing", "usage", "2026-01-01", "2026-01-02"], ["run", "info", "x" * 36]):
                done = tinkxx(*command, "--timeout", "20", **environment)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done)
                self.assertRegex(done.stderr, r"^tinkxx: .+\n  .+\n  try: .+\n$")
            server.shutdown()
            thread.join()

    def test_answers_for_help_at_once(self):
        times = []
        for _ in range(20):
            begun = time.monotonic()
            self.assertEqual(tinkxx("--help").returncode, 0)
            times.append(time.monotonic() - begun)
        # Twenty milliseconds for a release build on an idle machine; the best of some here.
        self.assertLess(min(times), 0.2)

    def test_completes_in_the_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.good("completion", shell).stdout
            for word in ("checkpoint", "set-ttl", "--run-id"):
                self.assertIn(word if shell != "fish" else word.lstrip("-"), script)
        line = "source <(" + PROGRAM + " completion bash); COMP_WORDS=(%s); COMP_CWORD=%d; _tinkxx; echo ${COMPREPLY[*]}"
        for words, expected in (("tinkxx ser", "serve"), ("tinkxx checkpoint pub", "publish"),
                                ("tinkxx run list --lim", "--limit"), ("tinkxx run list x --off", "--offset")):
            done = subprocess.run(["bash", "-c", line % (words, len(words.split()) - 1)], env=ENVIRONMENT,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.stdout.strip(), expected, done)

    def test_the_guide_is_true(self):
        """Each command of the guide is one that there is, and each output is what the command says."""
        text = GUIDE.read_text()
        for command in set(re.findall(r"^\$ tinkxx (--?[a-z]+|[a-z]+(?: [a-z][a-z-]+)?)", text, re.MULTILINE)):
            words = command.split()
            if words[0].startswith("-"):
                continue
            done = tinkxx(*words, "--help")
            if done.returncode != 0:
                done = tinkxx(words[0], "--help")
            self.assertEqual(done.returncode, 0, command)
        for shown, output in re.findall(r"^\$ tinkxx ((?:help|[a-z ]+ --help)[^\n]*)\n(.*?)^```", text,
                                        re.MULTILINE | re.DOTALL):
            self.assertEqual(tinkxx(*shown.split()).stdout, output, shown)
        commands = re.findall(r"^  ([a-z]+(?: [a-z-]+)?)  +[A-Z]", tinkxx("--help").stdout, re.MULTILINE)
        self.assertGreater(len(commands), 20)
        for command in commands:
            self.assertIn(f"`tinkxx {command}", text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
