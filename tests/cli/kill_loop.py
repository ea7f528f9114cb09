"""Kills a server again and again, at moments that nobody chose, and looks at what is left.

    kill_loop.py --program FILE --model FOLDER [--rounds N] [--seed N] [--without-home-check]

One home directory lives through all rounds. In each of them `tinkxx serve` is started on it, two clients train,
save, publish, delete and so on, and SIGKILL ends it: mostly while it works, sometimes while it starts or ends. Then
the home directory is read from outside: the database is sound, each checkpoint in it has its files, and each change
that the server has acknowledged is there. A change that was under way may be there or not. The next server has to
list the same, and to sample from a checkpoint the tokens that it gave before.

Files of somebody else lie in the home directory; nobody may touch them, and each start warns of them once.

Between the rounds the home directory is put back to the version before, and whoever brings it up to date is killed; or
it is harmed (a marker is lost, rows cannot be read or are missing, the database is damaged) and `tinkxx home check
--repair` is killed. A second one has to repair everything. --without-home-check leaves this out.
Exit codes: 0 nothing was lost; 1 something was, and is named.
"""

import argparse
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from api import Api, Late, Refused, pass_of, sample_of

GONE = (OSError, http.client.HTTPException)
WORKERS = 2
ABSENT = None
DAY = 86400
MOST_CHECKPOINTS = 200
KEPT = ("meta", "session", "run", "sampler", "checkpoint", "request", "usage", "quarantine")
# Tables whose rows are read one by one, so that a bad one is noticed.
READ = ("session", "run", "sampler", "checkpoint", "request", "usage")
MARKER = "tinkxx-home.json"
# The row of a checkpoint, which lies beside its files and is none of them.
NOTE = ".tinkxx-checkpoint.json"


class Broken(Exception):
    """A promise that was not kept."""


def check(held, what):
    if not held:
        raise Broken(what)


def address(path):
    """Of a checkpoint, where it is changed and deleted."""
    run, name = path.removeprefix("tinker://").split("/", 1)
    return f"training_runs/{quote(run, safe='')}/checkpoints/{name}"


class Ledger:
    """What the home directory has to hold: for each thing, the states that are possible. More than one if a change was
    under way when the server was killed. Any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.possible = {}
        # Copies get their names from the server.
        self.copies_under_way = 0

    def own_run(self, path):
        """Whether a checkpoint belongs to a run that a client has made, and not to a copy."""
        return ("session", path.removeprefix("tinker://").split(":")[0]) in self.possible

    def begin(self, key, after):
        with self.lock:
            self.possible.setdefault(key, {ABSENT}).add(after)

    def done(self, key, after):
        with self.lock:
            self.possible[key] = {after}

    def known(self, kind):
        """Those of a kind whose state is certain."""
        with self.lock:
            return {key: next(iter(states)) for key, states in self.possible.items()
                    if key[0] == kind and len(states) == 1 and ABSENT not in states}

    def settle(self, kind, found):
        """Compares with what there is, which is certain from now on."""
        with self.lock:
            for key in [key for key in self.possible if key[0] == kind]:
                state = found.get(key[1], ABSENT)
                check(state in self.possible[key], f"{kind} {key[1]}: it is {state}, and may be {self.possible[key]}")
                self.possible[key] = {state}
            for name, state in found.items():
                if (kind, name) in self.possible:
                    continue
                check(kind == "checkpoint" and self.copies_under_way > 0 and not self.own_run(name),
                      f"{kind} {name} appeared, which nobody made")
                self.copies_under_way -= 1
                self.possible[(kind, name)] = {state}
            if kind == "checkpoint":
                self.copies_under_way = 0


class Home:
    """The home directory, from outside."""

    def __init__(self, folder):
        self.folder = folder
        self.foreign = {}
        self.hashes = {}  # of files, by what they are on the disk
        self.bad = {}  # rows that nobody can read, which may be put aside and may not be lost
        self.put_back_with = None  # the checkpoints when it was put back to the version before

    def put_foreign(self):
        """Things that look as if they belonged there, and do not."""
        for name, text in {"checkpoints/keep-me/weights.bin": "not yours", "checkpoints/notes.txt": "nor this",
                           "thesis.txt": "nor that"}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            self.foreign[path] = text

    def copy_of_database(self, copy):
        """To look is not to touch."""
        for end in ("", "-wal"):
            if Path(f"{self.folder / 'tinkxx.sqlite'}{end}").exists():
                shutil.copy(f"{self.folder / 'tinkxx.sqlite'}{end}", copy)
        return sqlite3.connect(f"file:{copy}/tinkxx.sqlite?mode=ro", uri=True)

    def rows(self, harmed=False):
        """The tables that matter, by key. Indexes may be damaged if it was harmed."""
        if not (self.folder / "tinkxx.sqlite").exists():
            return {table: {} for table in KEPT}
        with tempfile.TemporaryDirectory() as copy:
            connection = self.copy_of_database(copy)
            try:
                if not harmed:
                    sound = connection.execute("PRAGMA integrity_check").fetchall()
                    check(sound == [("ok",)], f"the database is damaged: {sound[:3]}")
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
                return {table: dict(connection.execute(f"SELECT key, value FROM {table} NOT INDEXED ORDER BY rowid"))
                        if table in tables else {} for table in KEPT}
            finally:
                connection.close()

    def good_rows(self, rows, table):
        """Those that were not made bad, decoded."""
        return {key: json.loads(value) for key, value in rows[table].items() if (table, key) not in self.bad}

    def whole(self, path):
        """Whether a file is all there; of weights the header tells its size."""
        if path.suffix != ".safetensors":
            return path.stat().st_size > 0
        with path.open("rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(length))
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        return path.stat().st_size == 8 + length + max(ends, default=0)

    def hash_of(self, file):
        there = file.stat()
        known = (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
        if known not in self.hashes:
            self.hashes[known] = hashlib.sha256(file.read_bytes()).hexdigest()
        return self.hashes[known]

    def complete(self, folder, row):
        """What is wrong with the files of a checkpoint; empty if nothing is."""
        if not folder.is_dir():
            return f"there is no folder {folder.name}"
        files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
        if not files:
            return f"{folder.name} is empty"
        wrong = [file.name for file in files if not self.whole(file)]
        if wrong:
            return f"{folder.name} has incomplete files: {wrong}"
        size = sum(file.stat().st_size for file in files)
        if "size_bytes" in row and size != row["size_bytes"]:
            return f"{folder.name} has {size} bytes, and {row['size_bytes']} are written down"
        if row.get("files"):
            found = {file.name: {"bytes": file.stat().st_size, "sha256": self.hash_of(file)} for file in files}
            if found != row["files"]:
                return f"{folder.name} has {found}, and {row['files']} is written down"
        return ""

    def lost(self, rows, row):
        """What is wrong with the folder of a row, which may be under way to its place, or not yet gone from it."""
        wrong = self.complete(self.folder / row["folder"], row)
        home_id = rows["meta"].get("home_id")
        if not wrong or home_id is None:
            return wrong
        home_id = home_id.decode() if isinstance(home_id, bytes) else home_id
        place = self.folder / row["folder"]
        for form in ("saving", "removing"):
            if not self.complete(place.parent / f".tinkxx-{home_id[:8]}-{form}-{place.name}", row):
                return ""
        return wrong

    def look(self, ledger, moment, harmed=False):
        """Everything that has to hold whenever the server is not running."""
        rows = self.rows(harmed)
        checkpoints, samplers, sessions = {}, {}, {}
        for key, row in self.good_rows(rows, "checkpoint").items():
            wrong = self.lost(rows, row)
            check(not wrong, f"{moment}: checkpoint {key}: {wrong}")
            version = (row.get("user_metadata") or {}).get("version", "")
            checkpoints[key] = (version, row["public"], "expires" in row)
        for key, row in self.good_rows(rows, "session").items():
            sessions[key] = row["status"]
        for key, row in self.good_rows(rows, "sampler").items():
            # Of a session that is over, the files are not needed any more.
            if row.get("folder") and sessions.get(row["session"]) == "active":
                wrong = self.lost(rows, row)
                check(not wrong, f"{moment}: sampler {key}: {wrong}")
            samplers[key] = "there"
        ledger.settle("checkpoint", checkpoints)
        # Of sessions and samplers the server makes others by itself: those of copies.
        ledger.settle("session", {name: state for name, state in sessions.items()
                                  if ("session", name) in ledger.possible})
        ledger.settle("sampler", {name: state for name, state in samplers.items()
                                  if ("sampler", name) in ledger.possible})
        for (table, key), value in self.bad.items():
            found = rows[table].get(key, rows["quarantine"].get(f"{table} {key}"))
            check(found == value, f"{moment}: the row {key} of {table}, which nobody can read, is lost")
        self.look_at_foreign(moment)
        self.look_at_marker(rows, moment)

    def look_at_foreign(self, moment):
        for path, text in self.foreign.items():
            check(path.exists() and path.read_text() == text, f"{moment}: {path.name}, which is foreign, was touched")

    def look_at_marker(self, rows, moment):
        marker = self.folder / MARKER
        known = rows["meta"].get("home_id")
        if known is None or not marker.exists() or marker.read_text() == "":
            return  # the start did not get so far, or it was harmed
        known = known.decode() if isinstance(known, bytes) else known
        told = json.loads(marker.read_text())["id"]
        check(known == told, f"{moment}: the marker has the id {told}, and the database {known}")

    def leftovers(self):
        """Folders and files in checkpoints/ that belong to nobody."""
        folders = {row["folder"] for row in self.good_rows(self.rows(), "checkpoint").values()}
        own = {path.relative_to(self.folder).parts[1] for path in self.foreign if path.parent != self.folder}
        return [entry.name for entry in (self.folder / "checkpoints").iterdir()
                if f"checkpoints/{entry.name}" not in folders and entry.name not in own]

    def foreign_names(self):
        """As the program calls them."""
        return sorted({"/".join(path.relative_to(self.folder).parts[:2]) for path in self.foreign
                       if path.parent != self.folder})

    def change(self):
        """For a change by hand: all of the database is in one file, and no log beside it."""
        connection = sqlite3.connect(self.folder / "tinkxx.sqlite", isolation_level=None)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        return connection

    def put_back(self):
        """Makes it one of schema 1: without marker, id, hashes and rows that were put aside."""
        for old in (self.folder / "backups").glob("*"):
            old.unlink()
        connection = self.change()
        connection.execute("BEGIN")
        for table in ("checkpoint", "sampler"):
            for key, value in connection.execute(f"SELECT key, value FROM {table}").fetchall():
                row = json.loads(value)
                row.pop("files", None)
                connection.execute(f"UPDATE {table} SET value = ? WHERE key = ?", (json.dumps(row).encode(), key))
        connection.execute("DELETE FROM meta WHERE key = 'home_id'")
        connection.execute("DROP TABLE quarantine")
        connection.execute("PRAGMA user_version = 0")
        connection.execute("COMMIT")
        self.put_back_with = {key for (key,) in connection.execute("SELECT key FROM checkpoint")}
        connection.close()
        self.bad = {}
        for note in (self.folder / "checkpoints").glob(f"*/{NOTE}"):
            note.unlink()
        (self.folder / MARKER).unlink()

    def look_at_backups(self):
        """Whoever has brought it up to date has kept what it was."""
        if self.put_back_with is None:
            return
        for backup in (self.folder / "backups").glob("schema-1*.sqlite"):
            connection = sqlite3.connect(f"file:{backup}?mode=ro", uri=True)
            sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            found = {key for (key,) in connection.execute("SELECT key FROM checkpoint")} if sound else None
            connection.close()
            if found == self.put_back_with:
                self.put_back_with = None
                return
        raise Broken("there is no whole backup of the database before it was brought up to date")

    # Harm that can be repaired ------------------------------------------------------------------

    def harm(self, chance):
        """Harms it in one to all ways. Gives the checkpoints whose rows are gone, by path."""
        ways = [self.lose_marker, self.spoil_rows, self.lose_rows, self.damage_database]
        unknown = {}
        page = None
        connection = self.change()
        for way in chance.sample(ways, chance.randint(1, len(ways))):
            if way == self.damage_database:
                page = self.an_index(connection, chance)
            else:
                unknown.update(way(connection, chance) or {})
        connection.close()
        if page:
            self.damage_database(*page)
        return unknown

    def lose_marker(self, _, chance):
        if chance.random() < 0.5:
            (self.folder / MARKER).unlink()
        else:
            (self.folder / MARKER).write_text("")

    def spoil_rows(self, connection, chance):
        """Adds rows that cannot be read: garbage, and half of a good one."""
        for table in chance.sample(READ, chance.randint(1, 3)):
            values = [value for (value,) in connection.execute(f"SELECT value FROM {table} NOT INDEXED LIMIT 5")]
            value = b"\x00 not a row"
            if values and table != "usage" and chance.random() < 0.5:
                value = bytes(chance.choice(values))[:-2]
            key = f"spoiled-{len(self.bad)}"
            connection.execute(f"INSERT INTO {table}(key, value) VALUES (?, ?)", (key, value))
            self.bad[(table, key)] = value

    def lose_rows(self, connection, chance):
        """Forgets checkpoints that can be adopted: by their notes they get their paths back."""
        known = {key: json.loads(value) for key, value in
                 connection.execute("SELECT key, value FROM checkpoint NOT INDEXED")
                 if ("checkpoint", key) not in self.bad}
        fit = sorted(key for key, row in known.items() if (self.folder / row["folder"] / NOTE).exists())
        lost = chance.sample(fit, min(len(fit), 3))
        for key in lost:
            connection.execute("DELETE FROM checkpoint WHERE key = ?", (key,))
        return {key: known[key] for key in lost}

    def an_index(self, connection, chance):
        table = chance.choice(("meta", "session", "checkpoint", "sampler", "request", "audit"))
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?",
                                     (f"sqlite_autoindex_{table}_1",)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        return (page - 1) * size, chance.randbytes(size)

    def damage_database(self, at, garbage):
        """Writes over an index. All rows can still be read, by those who do without it."""
        with (self.folder / "tinkxx.sqlite").open("r+b") as file:
            file.seek(at)
            file.write(garbage)


class Worker(threading.Thread):
    """A client that does whatever comes to its mind, until the server is gone."""

    def __init__(self, port, number, name, ledger, promised, seed):
        super().__init__()
        self.api = Api(port)
        self.ledger, self.promised = ledger, promised
        self.name_of_all = f"{name}-{number}"
        self.chance = random.Random(seed)
        self.count = 0
        self.step = 0
        self.failure = None
        self.done = 0

    def run(self):
        try:
            self.session = self.api.session()
            self.ledger.done(("session", self.session), "active")
            self.model = self.api.model(self.session)
            while True:
                self.chance.choice([self.train, self.train, self.save, self.save, self.save_for_sampler,
                                    self.save_unnamed, self.overwrite, self.sample, self.delete, self.publish,
                                    self.set_ttl, self.copy, self.finish])()
                self.done += 1
        except GONE:
            pass  # which is what this is about
        except Exception as failure:  # noqa: BLE001: told by the main thread
            self.failure = failure
        finally:
            self.api.close()

    def next_step(self):
        self.step += 1
        return self.step

    def fresh_name(self):
        self.count += 1
        return f"{self.name_of_all}-{self.count}"

    def train(self):
        self.api.result(self.api.post("forward_backward", pass_of(self.model, self.next_step(), 2, 8)))
        self.api.result(self.api.post("optim_step", {"model_id": self.model, "seq_id": self.next_step(),
                                                     "adam_params": {"learning_rate": 0.01}}))

    def save_as(self, operation, kind, name, **more):
        path = f"tinker://{self.model}/{kind}/{name}"
        version = self.fresh_name()
        after = (version, False, "ttl_seconds" in more)
        self.ledger.begin(("checkpoint", path), after)
        saved = self.api.result(self.api.post(operation, {"model_id": self.model, "seq_id": self.next_step(),
                                                          "path": name, "user_metadata": {"version": version},
                                                          **more}))
        check(saved.get("path") == path, f"{operation} of {path} said {saved}")
        self.ledger.done(("checkpoint", path), after)

    def save(self):
        self.save_as("save_weights", "weights", self.fresh_name())

    def save_for_sampler(self):
        self.save_as("save_weights_for_sampler", "sampler_weights", self.fresh_name())

    def overwrite(self):
        self.save_as("save_weights", "weights", "again", overwrite=True)

    def save_unnamed(self):
        self.count += 1
        sampler = f"{self.session}:sample:{self.count}"
        self.ledger.begin(("sampler", sampler), "there")
        saved = self.api.result(self.api.post("save_weights_for_sampler", {
            "model_id": self.model, "seq_id": self.next_step(), "sampling_session_seq_id": self.count}))
        check(saved.get("sampling_session_id") == sampler, f"save_weights_for_sampler of {sampler} said {saved}")
        self.ledger.done(("sampler", sampler), "there")
        self.promise(sampler)

    def sample(self):
        self.count += 1
        sampler = f"{self.session}:sample:{self.count}"
        self.ledger.begin(("sampler", sampler), "there")
        made = self.api.sampler(self.session, self.count, base_model="tinkxx/tiny")
        check(made == sampler, f"create_sampling_session made {made}, not {sampler}")
        self.ledger.done(("sampler", sampler), "there")
        self.promise(sampler)

    def promise(self, sampler):
        """A sample that is accepted has to be computed, by whichever server."""
        promised = self.api.post("asample", sample_of(sampler, 0, max_tokens=8))
        self.promised.append((self.session, promised))

    def own(self):
        """One of its checkpoints whose state is certain."""
        mine = [(path, state) for (_, path), state in self.ledger.known("checkpoint").items()
                if path.startswith(f"tinker://{self.model}/")]
        return self.chance.choice(mine) if mine else (None, None)

    def change(self, method, path, end, body, after):
        self.ledger.begin(("checkpoint", path), after)
        self.api.call(method, address(path) + end, body)
        self.ledger.done(("checkpoint", path), after)

    def delete(self):
        path, _ = self.own()
        if path:
            self.change("DELETE", path, "", None, ABSENT)

    def publish(self):
        path, state = self.own()
        if path:
            self.change("DELETE" if state[1] else "POST", path, "/publish", None, (state[0], not state[1], state[2]))

    def set_ttl(self):
        path, state = self.own()
        if path:
            seconds = None if state[2] else 30 * DAY
            self.change("PUT", path, "/ttl", {"ttl_seconds": seconds}, (state[0], state[1], not state[2]))

    def copy(self):
        path, state = self.own()
        if not path:
            return
        with self.ledger.lock:
            self.ledger.copies_under_way += 1
        made = self.api.post("copy_weights", {"source_path": path})["tinker_path"]
        with self.ledger.lock:
            self.ledger.copies_under_way -= 1
            self.ledger.possible[("checkpoint", made)] = {(state[0], False, False)}

    def finish(self):
        """Ends its session, now and then, and begins another."""
        if self.chance.random() < 0.7:
            return
        self.promised[:] = [one for one in self.promised if one[0] != self.session]
        self.ledger.begin(("session", self.session), "finished")
        self.api.post(f"sessions/{self.session}/finish", {"reason": {"type": "success"}})
        self.ledger.done(("session", self.session), "finished")
        self.session = self.api.session()
        self.ledger.done(("session", self.session), "active")
        self.model = self.api.model(self.session)
        self.step = 0


class Loop:
    def __init__(self, options, folder):
        self.options = options
        self.chance = random.Random(options.seed)
        models = folder / "models"
        models.mkdir()
        (models / "tiny").symlink_to(Path(options.model).resolve(), target_is_directory=True)
        self.environment = {**os.environ, "TINKXX_MODELS": str(models), "HOME": str(folder)}
        self.environment.pop("TINKXX_API_KEY", None)
        self.home = Home(folder / "home")
        self.home.folder.mkdir()
        self.ledger = Ledger()
        self.log = folder / "log"
        self.server = None
        self.tokens = {}  # that each checkpoint has given
        self.start_time = 1.0
        self.repair_time = 1.0
        self.counts = {"working": 0, "starting": 0, "ending": 0, "repairing": 0, "migrating": 0}
        self.changes = 0

    def start(self):
        with self.log.open("w") as log:
            self.server = subprocess.Popen([self.options.program, "serve", "--port", "0", "--json", "--threads", "1",
                                            "--home", str(self.home.folder)], env=self.environment,
                                           stdout=subprocess.PIPE, stderr=log, text=True)
        return self.server

    def ready(self, server):
        line = server.stdout.readline()
        if not line:
            raise Broken(f"the server does not start: {server.wait()} and\n{self.log.read_text()[-2000:]}")
        self.look_at_warnings()
        return json.loads(line)["port"]

    def look_at_warnings(self):
        """One line of what is foreign, and it names nothing else."""
        lines = [line for line in self.log.read_text().splitlines() if "its database does not know" in line]
        names = self.home.foreign_names()
        check(len(lines) == (1 if names else 0), f"{len(lines)} warnings of things that nobody knows: {lines}")
        if names:
            check(f"holds {len(names)} things" in lines[0] and all(name in lines[0] for name in names),
                  f"the server keeps {names}, and says: {lines[0]}")

    def kill(self, server, moment):
        server.kill()
        server.wait()
        server.stdout.close()
        self.counts[moment] += 1
        self.home.look(self.ledger, f"killed while {moment}")

    def kill_in_its_start(self):
        server = self.start()
        time.sleep(self.chance.uniform(0, self.start_time))
        self.kill(server, "starting")

    def home_check(self, *more):
        return [self.options.program, "home", "check", "--json", *more, "--home", str(self.home.folder)]

    def check_home(self, *more):
        """Runs it to its end; nothing may stay wrong but what is foreign."""
        begun = time.monotonic()
        done = subprocess.run(self.home_check(*more), env=self.environment, capture_output=True, text=True, check=False,
                              timeout=120)
        self.repair_time = time.monotonic() - begun
        told = f"home check {' '.join(more)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        check(done.stdout, told)
        wrong = sorted(one["what"] for one in json.loads(done.stdout)["findings"] if not one["done"])
        check(wrong == self.home.foreign_names() and done.returncode == (1 if wrong else 0), told)

    def kill_a_repair(self, moment, harmed):
        with self.log.open("a") as log:
            repair = subprocess.Popen(self.home_check("--repair"), env=self.environment, stdout=log, stderr=log)
        time.sleep(self.chance.uniform(0, self.repair_time))
        repair.kill()
        repair.wait()
        self.counts[moment] += 1
        self.home.look(self.ledger, f"killed while {moment}", harmed)

    def kill_in_a_migration(self):
        # Names of what is not finished have the id of the home, which it will lose.
        self.check_home("--repair")
        self.home.put_back()
        if self.chance.random() < 0.3:
            return self.kill_a_repair("migrating", harmed=False)
        server = self.start()
        time.sleep(self.chance.uniform(0, self.start_time))
        self.kill(server, "migrating")

    def kill_in_a_repair(self):
        unknown = self.home.harm(self.chance)
        for path in unknown:
            self.ledger.done(("checkpoint", path), ABSENT)
        adopted = {path: ((row.get("user_metadata") or {}).get("version", ""), False, False)
                   for path, row in unknown.items()}
        for path, state in adopted.items():
            self.ledger.begin(("checkpoint", path), state)
        self.kill_a_repair("repairing", harmed=True)
        for path, row in unknown.items():
            wrong = self.home.complete(self.home.folder / row["folder"], row)
            check(not wrong, f"killed while repairing: {path}, which no row names: {wrong}")
            self.ledger.done(("checkpoint", path), adopted[path])
        self.check_home("--repair")
        self.home.look(self.ledger, "after a repair")

    def compare(self, port, promised):
        """A server that has just started knows all that is in the home directory."""
        api = Api(port)
        listed = {}
        for one in api.call("GET", "checkpoints?limit=10000")["checkpoints"]:
            listed[one["tinker_path"]] = (one["public"], one.get("expires_at") is not None)
        known = {path: state[1:] for (_, path), state in self.ledger.known("checkpoint").items()}
        check(listed == known, f"the server lists {set(listed.items()) - set(known.items())} and does not list "
                               f"{set(known.items()) - set(listed.items())}")
        for _, one in promised:
            found = api.result(one)
            check(len(found.get("sequences", [{}])[0].get("tokens", [])) == 8,
                  f"the sample {one['request_id']} was accepted, and is now: {found}")
        if known:
            session = api.session()
            path = self.chance.choice(sorted(known))
            sampler = api.sampler(session, 0, model_path=path)
            drawn = api.result(api.post("asample", sample_of(sampler, 0, max_tokens=8)))
            tokens = drawn["sequences"][0]["tokens"]
            version = self.ledger.known("checkpoint")[("checkpoint", path)][0]
            before = self.tokens.setdefault((path, version), tokens)
            check(before == tokens, f"{path} gives {tokens}, and gave {before}")
            api.post(f"sessions/{session}/finish", {"reason": {"type": "success"}})
        # Else each look would take longer than the one before.
        for path in self.chance.sample(sorted(known), max(0, len(known) - MOST_CHECKPOINTS)):
            api.call("DELETE", address(path))
            self.ledger.done(("checkpoint", path), ABSENT)
        # What no row knows any more is removed, and what it never knew is not.
        limit = time.monotonic() + 20
        while self.home.leftovers() and time.monotonic() < limit:
            time.sleep(0.05)
        check(not self.home.leftovers(), f"nobody removes {self.home.leftovers()}")
        self.home.look_at_foreign("after a start")
        self.home.look_at_backups()
        api.close()

    def run(self):
        promised = []
        for number in range(self.options.rounds):
            if number > 0 and not self.options.without_home_check:
                self.chance.choice([self.kill_in_a_migration, self.kill_in_a_repair, lambda: None])()
            if self.chance.random() < 0.3:
                self.kill_in_its_start()
            begun = time.monotonic()
            server = self.start()
            port = self.ready(server)
            self.start_time = max(0.05, time.monotonic() - begun)
            self.compare(port, promised)
            promised = []
            if number == 0:
                self.home.put_foreign()
            workers = [Worker(port, i, f"r{number}", self.ledger, promised, self.options.seed * 1000 + number * 10 + i)
                       for i in range(WORKERS)]
            for worker in workers:
                worker.start()
            time.sleep(self.chance.uniform(0, self.options.work))
            moment = "working"
            if self.chance.random() < 0.2:
                moment = "ending"
                server.send_signal(signal.SIGTERM)
                time.sleep(self.chance.uniform(0, 0.3))
            server.kill()
            for worker in workers:
                worker.join()
                refused = isinstance(worker.failure, Refused) and worker.failure.status == 503 and moment == "ending"
                check(worker.failure is None or refused, f"round {number}: a client failed: {worker.failure!r}")
                self.changes += worker.done
            self.kill(server, moment)
        server = self.start()
        self.compare(self.ready(server), promised)
        server.terminate()
        check(server.wait(timeout=20) == 0, "the last server did not end cleanly")
        server.stdout.close()
        self.home.look(self.ledger, "after a clean end")
        if not self.options.without_home_check:
            self.check_home("--repair")  # older checkpoints get their hashes
            self.check_home()
            self.home.look(self.ledger, "in the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="tinkxx")
    parser.add_argument("--model", required=True, help="a folder with a model, which stands in for the one that is shipped")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--work", type=float, default=1.5, help="seconds that a server works at most (1.5)")
    parser.add_argument("--without-home-check", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the home directory if something was lost")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tinkxx-kill-"))
    loop = Loop(options, folder)
    try:
        loop.run()
    except (Broken, Late) as broken:
        print(f"broken (seed {options.seed}): {broken}", file=sys.stderr)
        if options.keep:
            print(f"see {folder}", file=sys.stderr)
            folder = None
        return 1
    finally:
        if loop.server:
            loop.server.kill()  # if the loop did not come to its end
            loop.server.wait()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    kills = ", ".join(f"{count} while {moment}" for moment, count in loop.counts.items() if count)
    print(f"killed {kills}; {loop.changes} changes, {len(loop.ledger.known('checkpoint'))} checkpoints in the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
