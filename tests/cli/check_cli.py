"""Runs the program and checks stdout, stderr and exit codes.

    check_cli.py PROGRAM MODEL VERSION [installed]

MODEL is a folder with a model, which stands in for the one that is shipped: what it says is of no matter here.
With `installed`, PROGRAM has to find MODEL by itself, and nothing else is checked.
"""

import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

from api import Api, pass_of, sample_of
from program import ENVIRONMENT, FOLDER, MODEL, PROGRAM, SANITIZED, fresh, serving, tinkxx

VERSION = sys.argv[3]


def ask(server, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.told["port"], timeout=60)
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body=body, headers=lines)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


class Program(unittest.TestCase):
    def test_prints_its_version(self):
        done = tinkxx("version")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"tinkxx {VERSION}\n", ""))
        self.assertEqual(json.loads(tinkxx("version", "--json").stdout), {"version": VERSION})
        self.assertEqual(tinkxx("--version").stdout, f"tinkxx {VERSION}\n")

    def test_teaches_by_its_help(self):
        done = tinkxx("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("serve", "version", "Exit codes", "NO_COLOR"):
            self.assertIn(word, done.stdout)
        done = tinkxx("serve", "--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--model", "--host", "--port", "--home", "--api-key", "--threads", "--chaos", "--seed", "--json",
                     "TINKER_BASE_URL", "Examples:", "Exit codes:"):
            self.assertIn(word, done.stdout)

    def test_refuses_a_wrong_command_line_with_2(self):
        for arguments, word in [([], "no command"), (["sreve"], "sreve"), (["serve", "--prot", "1"], "--prot"),
                                (["serve", "--port", "70000"], "70000"), (["serve", "--port", "x"], "--port"),
                                (["serve", "--threads", "-1"], "--threads"),
                                (["serve", "--threads", "100000"], "--threads"),
                                (["serve", "--port", "-1"], "--port"), (["serve", "--port", "0x50"], "--port"),
                                (["serve", "--port", "80 "], "--port"), (["serve", "--seed", "1e3"], "--seed")]:
            done = tinkxx(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(word, done.stderr)
            self.assertIn("--help", done.stderr)

    def test_refuses_an_empty_value_of_each_option(self):
        # Such as that of a variable that was never set: a key that is empty would be no key at all.
        for option in ("port", "threads", "seed", "host", "home", "model", "api-key", "allow-host", "chaos"):
            for arguments in ([f"--{option}", ""], [f"--{option}="]):
                done = tinkxx("serve", *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertIn(f"--{option}", done.stderr)

    def test_takes_numbers_in_base_ten(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.trouble(tinkxx("serve", "--port", f"0{port}", "--home", fresh("h")), f"127.0.0.1:{port}")

    def test_an_empty_variable_counts_as_not_set(self):
        with serving(TINKXX_API_KEY="", TINKXX_HOME="") as server:
            self.assertEqual(ask(server, "GET", "/api/v1/get_server_capabilities")[0], 200)

    def trouble(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "tinkxx: the server cannot start", done.stderr)
        self.assertEqual(len(lines), 3, done.stderr)
        # In words, and not only the option.
        self.assertRegex(lines[2], r"^  try: [^(\s]\S* \S+", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_says_that_a_port_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.trouble(tinkxx("serve", "--port", port, "--home", fresh("h")), f"127.0.0.1:{port}", "--port")

    def test_says_that_a_host_is_not_this_machine(self):
        self.trouble(tinkxx("serve", "--host", "192.0.2.1", "--home", fresh("h")), "192.0.2.1", "--host")

    def test_says_that_a_folder_is_no_model(self):
        nothing = fresh("nothing")
        config = Path(fresh("config"))
        shutil.copy(MODEL / "config.json", config)
        weights = Path(fresh("weights"))
        (weights / "model.safetensors").write_text("")
        foreign = Path(fresh("foreign"))
        (foreign / "model.safetensors").write_text("")
        (foreign / "config.json").write_text('{"model_type": "other"}')
        for folder, word in [("/nowhere", "/nowhere"), (nothing, nothing), (config, "*.safetensors"),
                             (weights, "config.json"), (foreign, "other"), ("x=", "names no folder")]:
            self.trouble(tinkxx("serve", "--port", 0, "--home", fresh("h"), "--model", folder), word, "--model",
                         "name a folder with config.json")

    def test_says_that_two_models_have_one_name(self):
        self.trouble(tinkxx("serve", "--port", 0, "--home", fresh("h"), "--model", f"x={MODEL}", "--model", f"x={MODEL}"),
                     "called x", "rename", "--model")

    def test_says_that_a_key_cannot_be_sent(self):
        done = tinkxx("serve", "--port", 0, "--home", fresh("h"), TINKXX_API_KEY="tml-hidden\n")
        self.trouble(done, "--api-key")
        self.assertNotIn("hidden", done.stderr)

    def test_says_that_the_shipped_model_is_not_there(self):
        if (Path(__file__).resolve().parents[2] / "models/tiny/config.json").exists():
            return  # it is found where it was built
        self.trouble(tinkxx("serve", "--port", 0, TINKXX_MODELS=fresh("none")), "TINKXX_MODELS")

    def test_says_that_a_home_cannot_be_used(self):
        file = Path(fresh("f")) / "file"
        file.write_text("")
        self.trouble(tinkxx("serve", "--port", 0, "--home", file / "below"), str(file), "--home")
        with serving() as server:
            self.trouble(tinkxx("serve", "--port", 0, "--home", server.told["home"]), server.told["home"],
                         str(server.pid), "--home")
        broken = Path(fresh("broken"))
        (broken / "tinkxx.sqlite").write_text("this is no database, whatever its name says")
        self.trouble(tinkxx("serve", "--port", 0, "--home", broken), "not a database", "--home")
        self.trouble(tinkxx("serve", "--port", 0, HOME=""), "TINKXX_HOME", "--home")

    def test_says_that_a_home_cannot_be_written_to(self):
        # Not even by root.
        self.trouble(tinkxx("serve", "--port", 0, "--home", "/proc/nothing"), "/proc/nothing", "cannot be made",
                     "another directory", "--home")

    def test_shows_odd_names_in_a_home_without_obeying_them(self):
        home = fresh("odd")
        with serving("--home", home):
            pass
        odd = os.path.join(os.fsencode(home), b"checkpoints", b"\x1b[31mred\n\xff")
        os.mkdir(odd)
        done = tinkxx("home", "check", "--home", home)
        self.assertEqual(done.returncode, 1)
        self.assertIn("?[31mred ?", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        told = json.loads(tinkxx("home", "check", "--json", "--home", home).stdout)
        self.assertEqual(told["findings"][0]["what"], "checkpoints/\x1b[31mred\n\ufffd")
        self.assertTrue(os.path.isdir(odd))

    def test_says_that_a_folder_is_not_a_home(self):
        self.trouble(tinkxx("serve", "--port", 0, "--home", "/proc"), "/proc", "not a home", "empty directory", "--home")

    def test_says_what_is_wrong_with_the_faults(self):
        self.trouble(tinkxx("serve", "--port", 0, "--home", fresh("h"), "--chaos", "429:x"), '"x"', "429:0.05", "--chaos")

    def limited(self, *limits, **options):
        """`serve` under limits, each `(resource, value)`."""
        def before():
            for which, value in limits:
                resource.setrlimit(which, (value, value))
        return tinkxx("serve", "--port", 0, "--home", fresh("h"), before=before, **options)

    def test_says_which_limit_of_the_system_to_raise(self):
        for value in (10, 30, 50):
            self.trouble(self.limited((resource.RLIMIT_NOFILE, value)), str(value), "open files", "ulimit -n")
        # Files that are open already count too.
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
        try:
            self.trouble(self.limited((resource.RLIMIT_NOFILE, 120), inherited=opened), "120", "ulimit -n")
        finally:
            for one in opened:
                os.close(one)
        for value in (0, 1 << 10, 10 << 20):
            self.trouble(self.limited((resource.RLIMIT_FSIZE, value)), "ulimit -f")
        if not SANITIZED:
            # Or its libraries could not be loaded.
            for value in (80 << 20, 120 << 20, 200_000 << 10):
                self.trouble(self.limited((resource.RLIMIT_AS, value)), "memory", "ulimit -v")

    def test_says_that_there_are_no_more_threads(self):
        if os.getuid() != 0:
            self.skipTest("root alone can become a user who has no other processes")
        nobody = 54321  # who has no other processes, as they would count
        home = Path(fresh("threads"))
        home.chmod(0o777)
        Path(FOLDER.name).chmod(0o755)

        def become(count):
            os.setgid(nobody)
            resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
            os.setuid(nobody)
        for count in (1, 2, 4, 8):
            self.trouble(tinkxx("serve", "--port", 0, "--threads", 2, "--home", home, before=lambda: become(count)),
                         "threads", "ulimit -u")

    def test_ends_cleanly_by_either_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with serving() as server:
                self.assertEqual(ask(server, "GET", "/api/v1/healthz")[0], 200)
                self.assertEqual(server.end(number)[0], 0)

    def assert_ended(self, server, code=0, limit=10.0):
        self.assertEqual(server.returncode, code)
        self.assertLess(server.took, limit)

    def test_ends_at_any_moment_of_its_start(self):
        chance = random.Random(7)
        begun = time.monotonic()
        with serving() as server:
            start = time.monotonic() - begun
        for attempt in range(30):
            # Blocked before the program begins, a signal finds it in `main` however early it is sent. Otherwise
            # it may still find the loader of the program, which knows no better than to die by it.
            blocked = attempt % 3 != 0
            before = (lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])) if blocked else None
            with subprocess.Popen([PROGRAM, "serve", "--port", "0", "--json", "--home", fresh("h")], env=ENVIRONMENT,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  preexec_fn=before) as server:
                time.sleep(chance.uniform(0, 1.2 * start))
                server.terminate()
                out, errors = server.communicate(timeout=10)
            self.assertIn(server.returncode, (0,) if blocked else (0, -signal.SIGTERM), errors)
            # Either it served, or it says what happened.
            if server.returncode == 0 and not out:
                self.assertEqual(errors.splitlines(), ["ended by a signal before it served"])

    def test_ends_while_its_start_hangs(self):
        def copy_of_the_model(pipe):
            folder = Path(fresh("pipe")) / "model"
            shutil.copytree(MODEL, folder)
            (folder / pipe).unlink()
            os.mkfifo(folder / pipe)
            return ["--model", folder, "--home", fresh("h")]

        home = fresh("pipe")
        os.mkfifo(Path(home) / "tinkxx.sqlite")
        lock = fresh("pipe")
        os.mkfifo(Path(lock) / "lock")
        for arguments in (copy_of_the_model("config.json"), copy_of_the_model("model.safetensors"), ["--home", home],
                          ["--home", lock]):
            with subprocess.Popen([PROGRAM, "serve", "--port", "0", "--json", *map(str, arguments)], env=ENVIRONMENT,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
                try:
                    server.wait(timeout=2)  # a pipe in place of a file may be refused
                    self.assertEqual(server.returncode, 1)
                except subprocess.TimeoutExpired:
                    server.terminate()
                    _, errors = server.communicate(timeout=10)
                    # 1 if it had begun to serve and the thread that loads cannot be stopped.
                    self.assertIn(server.returncode, (0, 1), errors)
                    if server.returncode == 1:
                        self.assertIn("ended by force", errors)
                finally:
                    server.kill()

    def client(self, server):
        api = Api(server.told["port"])
        self.addCleanup(api.close)
        return api

    @contextmanager
    def training(self, *arguments):
        """A server in a pass that takes longer than it may take to end, and its client."""
        with serving(*arguments) as server:
            api = self.client(server)
            model = api.model(api.session())
            passes = [api.post("forward_backward", pass_of(model, i + 1, 400, 250)) for i in range(8)]
            time.sleep(0.3)
            yield server, api, passes

    def test_ends_during_long_samples(self):
        with serving() as server:
            api = self.client(server)
            sampler = api.sampler(api.session(), base_model="tinkxx/tiny")
            for i in range(8):
                api.post("asample", sample_of(sampler, i, samples=1024, max_tokens=250))
            server.end()
            self.assert_ended(server)

    def test_ends_during_training(self):
        with self.training() as (server, _, _):
            server.end()
            self.assert_ended(server)

    def test_ends_with_open_streams_and_polls(self):
        with serving() as server:
            api = self.client(server)
            sampler = api.sampler(api.session(), base_model="tinkxx/tiny")
            slow = api.post("asample", sample_of(sampler, 0, samples=1024, max_tokens=250))
            for path, body in [("stream_sample", sample_of(sampler, 1, samples=256, max_tokens=250)),
                               ("retrieve_future", {"request_id": slow["request_id"]})]:
                other = http.client.HTTPConnection("127.0.0.1", server.told["port"], timeout=60)
                other.request("POST", "/api/v1/" + path, json.dumps(body), {"Content-Type": "application/json"})
                self.addCleanup(other.close)
            time.sleep(0.3)
            server.end()
            self.assert_ended(server)

    def test_ends_with_connections_that_never_read(self):
        with serving() as server:
            request = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            for _ in range(20):
                one = socket.create_connection(("127.0.0.1", server.told["port"]))
                self.addCleanup(one.close)
                one.settimeout(0.2)
                try:
                    for _ in range(100):
                        one.sendall(request * 20)
                except TimeoutError:
                    pass  # neither side reads
            server.end()
            self.assert_ended(server)

    def test_ends_at_once_by_a_second_signal(self):
        for first, second in [(signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)]:
            with self.training() as (server, _, _):
                server.send_signal(first)
                time.sleep(0.3)
                self.assertIsNone(server.poll(), "it waits for what runs")
                server.end(second)
                self.assert_ended(server, -second, 2)

    def test_what_was_acknowledged_survives_each_end(self):
        home = fresh("home")
        for numbers in ([signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM], [signal.SIGKILL]):
            with self.training("--home", home) as (server, api, _):
                sampler = api.sampler(api.session(), base_model="tinkxx/tiny")
                promised = api.post("asample", sample_of(sampler, 0, max_tokens=2))
                for number in numbers:
                    server.send_signal(number)
                    time.sleep(0.1)
                server.wait(timeout=10)
            with serving("--home", home) as server:
                found = self.client(server).result(promised)
                self.assertEqual(len(found["sequences"][0]["tokens"]), 2, found)

    def test_goes_on_when_nobody_reads_its_log(self):
        with subprocess.Popen([PROGRAM, "serve", "--port", "0", "--json", "-v", "--home", fresh("h")], env=ENVIRONMENT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            server.told = json.loads(server.stdout.readline())
            server.stderr.close()
            for _ in range(3):
                self.assertEqual(ask(server, "GET", "/api/v1/healthz")[0], 200)
            server.terminate()
            self.assertEqual(server.wait(timeout=10), 0)

    def test_tells_where_it_serves(self):
        with serving() as server:
            told = server.told
            self.assertEqual(told["url"], f"http://127.0.0.1:{told['port']}")
            self.assertEqual((told["models"], told["version"], told["pid"]), (["tinkxx/tiny"], VERSION, server.pid))
            status, body = ask(server, "GET", "/api/v1/get_server_capabilities")
            self.assertEqual(status, 200)
            self.assertIn("tinkxx/tiny", body)
            self.assertEqual(server.end()[1], "", "a quiet server says nothing")

    def test_serves_models_by_name_or_folder(self):
        again = Path(fresh("again")) / "Other-1B"
        again.symlink_to(MODEL, target_is_directory=True)
        with serving("--model", f"{again}/", "--model", f"own/name={MODEL}") as server:
            self.assertEqual(server.told["models"], ["tinkxx/tiny", "Other-1B", "own/name"])

    def test_asks_for_its_key_and_never_writes_it(self):
        with serving("-v", TINKXX_API_KEY="tml-hidden-key") as server:
            self.assertEqual(ask(server, "GET", "/api/v1/get_server_capabilities")[0], 401)
            self.assertEqual(ask(server, "GET", "/api/v1/get_server_capabilities", X_API_Key="tml-wrong-key")[0], 401)
            self.assertEqual(ask(server, "GET", "/api/v1/get_server_capabilities", X_API_Key="tml-hidden-key")[0], 200)
            self.assertEqual(ask(server, "GET", "/api/v1/healthz?key=tml-query-key")[0], 200)
            code, errors = server.end()
            self.assertEqual(code, 0)
            self.assertEqual(errors.count("GET /api/v1/get_server_capabilities 401"), 2, errors)
            self.assertEqual(errors.count("GET /api/v1/get_server_capabilities 200"), 1, errors)
            self.assertNotIn("-key", errors)

    def test_cannot_be_driven_by_a_page_of_somebody_else(self):
        with serving() as server:
            port = server.told["port"]
            path = "/api/v1/create_session"
            body = json.dumps({"tags": [], "sdk_version": "0.36.0"})
            for headers in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"}, {"Origin": "null"},
                            {"Sec_Fetch_Site": "cross-site"}):
                status, text = ask(server, "POST", path, body, Content_Type="application/json", **headers)
                self.assertEqual(status, 403, (headers, text))
            status, text = ask(server, "POST", path, body, Content_Type="application/json",
                               Origin=f"http://127.0.0.1:{port}")
            self.assertEqual(status, 200, text)

    def test_warns_when_everybody_can_use_it(self):
        with serving("--host", "0.0.0.0") as server:
            self.assertIn("--api-key", server.end()[1])
        with serving("--host", "0.0.0.0", "--api-key", "tml-x") as server:
            self.assertEqual(server.end()[1], "")
        with serving("--api-key", "other") as server:
            self.assertIn("tml-", server.end()[1])

    def test_makes_faults_when_told_to(self):
        with serving("--chaos", "500:1", "--seed", 7) as server:
            self.assertEqual(ask(server, "GET", "/api/v1/get_server_capabilities")[0], 500)
            self.assertIn("500:1", server.end()[1])

    def test_speaks_plainly_to_people_without_a_terminal(self):
        command = [PROGRAM, "serve", "--port", "0", "--home", fresh("h")]
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as server:
            lines = [server.stderr.readline() for _ in range(4)]
            server.terminate()
            out, _ = server.communicate(timeout=60)
        self.assertEqual((server.returncode, out), (0, ""))
        text = "".join(lines)
        for word in ("tinkxx/tiny", "http://127.0.0.1:", "TINKER_BASE_URL=", "Ctrl-C"):
            self.assertIn(word, text)
        self.assertNotIn("\x1b", text)


class Installed(unittest.TestCase):
    def setUp(self):
        ENVIRONMENT.pop("TINKXX_MODELS", None)

    def test_serves_its_model(self):
        self.assertTrue((Path(PROGRAM).parent.parent / "share/tinkxx/models/tiny/config.json").samefile(
            MODEL / "config.json"))
        with serving() as server:
            self.assertEqual(server.told["models"], ["tinkxx/tiny"])
            status, body = ask(server, "GET", "/api/v1/get_server_capabilities")
            self.assertEqual(status, 200)
            self.assertIn("tinkxx/tiny", body)
            self.assertEqual(server.end()[0], 0)

    def test_looks_for_its_model_beside_it_first(self):
        elsewhere = Path(fresh("elsewhere"))
        (elsewhere / "bin").mkdir()
        shutil.copy(PROGRAM, elsewhere / "bin")
        model = elsewhere / "share/tinkxx/models/tiny"
        model.mkdir(parents=True)
        (model / "config.json").write_text("{}")  # which is no model
        done = subprocess.run([elsewhere / "bin/tinkxx", "serve", "--port", "0", "--home", fresh("home")],
                              env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(str(model), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "Installed" if sys.argv[4:] == ["installed"] else "Program"], verbosity=1)
