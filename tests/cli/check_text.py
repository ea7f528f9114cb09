"""Runs the commands about text and checks stdout, stderr and exit codes.

    check_text.py PROGRAM

Tokenizers are made here: small enough to be looked through, and with every part that the commands show.
"""

import json
import os
import pty
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": FOLDER.name, "TERM": "xterm"}
ENVIRONMENT.update({name: value for name, value in os.environ.items() if name.startswith("LD_")})


def spelt():
    """The letters by which byte-level vocabularies spell bytes."""
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


def byte_level():
    """The ids of bytes are the bytes; "ab" is 256, "Hi" 257; <s> and <e> are special."""
    letters = spelt()
    vocabulary = {letters[byte]: byte for byte in range(256)} | {"ab": 256, "Hi": 257}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "normalizer": None,
        "added_tokens": [{"id": 258, "content": "<s>", **special}, {"id": 259, "content": "<e>", **special}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {"type": "TemplateProcessing", "pair": [],
                           "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b", "H i"]},
    }


TOKENIZER = Path(FOLDER.name) / "model"
TOKENIZER.mkdir()
(TOKENIZER / "tokenizer.json").write_text(json.dumps(byte_level()))
(TOKENIZER / "tokenizer_config.json").write_text(json.dumps({
    "bos_token": "<s>", "eos_token": {"content": "<e>"},
    "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
                     "{% if add_generation_prompt %}assistant:{% endif %}"}))


def tinkxx(command, *arguments, given="", tokenizer=TOKENIZER, **environment):
    if isinstance(given, str):
        given = given.encode()
    done = subprocess.run([PROGRAM, command, "--tokenizer", str(tokenizer), *map(str, arguments)], input=given,
                          env={**ENVIRONMENT, **environment}, capture_output=True, timeout=120, check=False)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


class Text(unittest.TestCase):
    def good(self, done, stdout):
        self.assertEqual((done.returncode, done.stdout), (0, stdout), done.stderr)

    def trouble(self, done, *words):
        self.assertEqual(done.returncode, 1, done)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertTrue(done.stderr.startswith("tinkxx: "), done.stderr)

    def test_shows_each_token_with_its_text(self):
        done = tinkxx("tokenize", "Hi ab\né<e>")
        self.good(done, '258  "<s>"\n257  "Hi"\n 32  " "\n256  "ab"\n 10  "\\n"\n195  "<0xC3>"\n169  "<0xA9>"\n259  "<e>"\n')
        self.assertEqual(done.stderr, "8 tokens, 11 bytes\n")

    def test_shows_where_each_token_was(self):
        self.good(tinkxx("tokenize", "--offsets", "--no-special", "Hi é"),
                  '257  0-2  "Hi"\n 32  2-3  " "\n195  3-5  "<0xC3>"\n169  3-5  "<0xA9>"\n')

    def test_reads_stdin_with_its_newline(self):
        self.good(tinkxx("tokenize", "--ids", given="ab\n"), "258 256 10\n")
        self.good(tinkxx("tokenize", "--ids", "--no-special", given="\0"), "0\n")
        self.good(tinkxx("tokenize", "--ids", "--no-special"), "\n")

    def test_counts(self):
        self.good(tinkxx("tokenize", "--count", "Hi ab"), "4\n")
        self.good(tinkxx("tokenize", "--count", "--jsonl", "--no-special", given='"Hi ab"\n""\n'), "3\n0\n")

    def test_answers_a_line_by_a_line(self):
        self.good(tinkxx("tokenize", "--jsonl", given='"Hi"\n  "a\\u0062\\n\\ud83d\\ude00"\r\n""'),
                  "[258,257]\n[258,256,10,240,159,152,128]\n[258]\n")
        self.good(tinkxx("tokenize", "--jsonl", "--no-special", given='"Hi"\n'), "[257]\n")
        self.good(tinkxx("tokenize", "--jsonl", "--offsets", given='"Hi a"\n'),
                  '{"ids":[258,257,32,97],"offsets":[[0,0],[0,2],[2,3],[3,4]]}\n')

    def test_keeps_the_order_of_many_lines(self):
        lines = [f"ab Hi {i} " + "x" * (i % 300) for i in range(20000)]
        done = tinkxx("tokenize", "--jsonl", "--threads", 4, given="".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n"), len(lines))
        back = tinkxx("detokenize", "--jsonl", "--skip-special", given=done.stdout)
        self.assertEqual([json.loads(line) for line in back.stdout.splitlines()], lines)

    def test_answers_before_it_is_asked_again(self):
        command = [PROGRAM, "tokenize", "--tokenizer", str(TOKENIZER), "--jsonl"]
        with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
            for text, answer in [("Hi", "[258,257]\n"), ("ab", "[258,256]\n")]:
                asked.stdin.write(json.dumps(text) + "\n")
                asked.stdin.flush()
                self.assertEqual(asked.stdout.readline(), answer)
            asked.stdin.close()
            self.assertEqual(asked.wait(timeout=60), 0)

    def test_names_the_line_that_is_no_json(self):
        for bad, reason in [("{}", "column 1 is not a JSON string"), ('"a', "closing quote"), ('"a" b', "column 5"),
                            ('"\\x"', "escape"), ('"\\ud800"', "whole character"), ('"\\u12"', "hexadecimal"), ("", "ends before")]:
            done = tinkxx("tokenize", "--jsonl", given=f'"Hi"\n"ab"\n{bad}\n"Hi"\n')
            self.trouble(done, "line 3", reason)
            self.assertEqual(done.stdout, "[258,257]\n[258,256]\n")
        self.trouble(tinkxx("detokenize", "--jsonl", given="[257]\n[-1]\n"), "line 2", "column 2")
        self.trouble(tinkxx("detokenize", "--jsonl", given="[1 2]\n"), "line 1", "comma")

    def test_refuses_bytes_that_are_no_text_unless_told_otherwise(self):
        self.trouble(tinkxx("tokenize", "--ids", given=b"a\xff"), "UTF-8", "--lossy")
        self.good(tinkxx("tokenize", "--ids", "--no-special", "--lossy", given=b"a\xff"), "97 239 191 189\n")
        self.trouble(tinkxx("tokenize", "--jsonl", given=b'"\xff"\n'), "line 1", "UTF-8", "--lossy")

    def test_does_with_special_text_what_it_is_told(self):
        self.good(tinkxx("tokenize", "--ids", "--no-special", "<e>"), "259\n")
        self.good(tinkxx("tokenize", "--ids", "--no-special", "--special-text", "text", "<e>"), "60 101 62\n")
        self.trouble(tinkxx("tokenize", "--special-text", "forbid", "a<e>"), "<e>")

    def test_gives_the_text_back_as_it_was(self):
        self.good(tinkxx("detokenize", 257, 32, 256, 10), "Hi ab\n")
        self.good(tinkxx("detokenize", given="[257, 32,\n256]"), "Hi ab")
        self.good(tinkxx("detokenize", "--skip-special", given="258 257 259"), "Hi")
        self.good(tinkxx("detokenize", "--jsonl", given="[258,257]\n[]\n[195]\n"), '"<s>Hi"\n""\n"\ufffd"\n')
        self.good(tinkxx("detokenize", "--jsonl", given="[34,92,0,127]\n"), '"\\"\\\\\\u0000\x7f"\n')
        self.trouble(tinkxx("detokenize", given="257 x"), "'x'")
        self.trouble(tinkxx("detokenize", given="99999999999"), "id 1", "larger")

    def test_writes_to_a_terminal_in_colour_and_nothing_that_it_obeys(self):
        def on_terminal(*arguments, **environment):
            parent, child = pty.openpty()
            with subprocess.Popen([PROGRAM, *arguments, "--tokenizer", str(TOKENIZER)], env={**ENVIRONMENT, **environment},
                                  stdin=subprocess.DEVNULL, stdout=child, stderr=subprocess.PIPE) as process:
                os.close(child)
                out = b""
                while True:
                    try:
                        part = os.read(parent, 4096)
                    except OSError:
                        break
                    if not part:
                        break
                    out += part
                process.stderr.read()
            os.close(parent)
            return out
        self.assertIn(b"\x1b[", on_terminal("tokenize", "Hi"))
        self.assertNotIn(b"\x1b", on_terminal("tokenize", "Hi\x1b[31m", NO_COLOR="1"))
        self.assertNotIn(b"\x1b", on_terminal("detokenize", "27", "257"))

    def test_finds_a_model_in_the_cache(self):
        cache = Path(tempfile.mkdtemp(dir=FOLDER.name))
        snapshot = cache / "models--org--model/snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (snapshot / "tokenizer.json").symlink_to(TOKENIZER / "tokenizer.json")
        (cache / "models--org--model/refs").mkdir()
        (cache / "models--org--model/refs/main").write_text("a" * 40)
        self.good(tinkxx("tokenize", "--ids", "Hi", tokenizer="org/model", HF_HUB_CACHE=str(cache)), "258 257\n")
        self.trouble(tinkxx("tokenize", "Hi", tokenizer="org/other", HF_HUB_CACHE=str(cache)), "org/other", str(cache),
                     "huggingface-cli download org/other")
        self.trouble(tinkxx("tokenize", "--download", "Hi", tokenizer="org/other", HF_HUB_CACHE=str(cache), HF_HUB_OFFLINE="1"),
                     "HF_HUB_OFFLINE")

    def test_says_what_is_wrong_with_a_tokenizer(self):
        self.trouble(tinkxx("tokenize", "x", tokenizer="/nowhere"), "/nowhere", "try: ")
        empty = tempfile.mkdtemp(dir=FOLDER.name)
        self.trouble(tinkxx("tokenize", "x", tokenizer=empty), empty, "tokenizer.json")
        broken = Path(empty) / "tokenizer.json"
        broken.write_text("{")
        self.trouble(tinkxx("tokenize", "x", tokenizer=broken), "tokenizer.json")

    def test_refuses_a_wrong_command_line_with_2(self):
        for command, arguments in [("tokenize", ["--special-text", "x"]), ("tokenize", ["--jsonl", "text"]),
                                   ("tokenize", ["--threads", "x"]), ("detokenize", ["x"]), ("detokenize", ["-1"]),
                                   ("render", []), ("render", ["--template", "--renderer", "x"])]:
            done = tinkxx(command, *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(f"tinkxx {command} --help", done.stderr)
        self.assertEqual(tinkxx("tokenize", tokenizer="").returncode, 2)

    def test_teaches_by_its_help(self):
        for command, words in [("tokenize", ["--jsonl", "--no-special", "--count", "--ids", "HF_HUB_CACHE"]),
                               ("detokenize", ["--jsonl", "--skip-special"]),
                               ("render", ["--renderer", "--template", "--prompt", "--train-on"])]:
            done = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for word in [*words, "--tokenizer", "Examples:", "Exit codes:"]:
                self.assertIn(word, done.stdout)

    CHAT = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "Hi"}]

    def test_renders_by_the_template_of_the_folder(self):
        line = json.dumps(self.CHAT) + "\n"
        self.good(tinkxx("render", "--template", "--jsonl", given=line), '"<s>user: ab<e>assistant: Hi<e>"\n')
        self.good(tinkxx("render", "--template", "--prompt", given=json.dumps({"messages": self.CHAT[:1], "x": [1, {"y": "}"}]})),
                  "<s>user: ab<e>assistant:")

    def test_renders_examples_and_prompts(self):
        line = json.dumps(self.CHAT) + "\n"
        done = tinkxx("render", "--renderer", "role_colon", "--jsonl", given=line + line)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = map(json.loads, done.stdout.splitlines())
        self.assertEqual(first, second)
        self.assertEqual(len(first["tokens"]), len(first["weights"]))
        text = tinkxx("detokenize", "--jsonl", given=json.dumps(first["tokens"]) + "\n").stdout
        self.assertIn("Assistant: Hi", json.loads(text))
        trained = [token for token, weight in zip(first["tokens"], first["weights"]) if weight > 0]
        self.assertIn(257, trained)
        self.assertNotIn(256, trained)
        everything = tinkxx("render", "--renderer", "role_colon", "--jsonl", "--train-on", "all_tokens", given=line)
        self.assertEqual(set(json.loads(everything.stdout)["weights"][1:]), {1})  # nobody learns to say <s>
        prompt = json.loads(tinkxx("render", "--renderer", "role_colon", "--jsonl", "--prompt", given=line).stdout)
        self.assertEqual(list(prompt), ["tokens"])

    def test_shows_an_example_to_people(self):
        done = tinkxx("render", "--renderer", "role_colon", given=json.dumps(self.CHAT))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Hi", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_names_the_conversation_that_is_none(self):
        good = json.dumps(self.CHAT) + "\n"
        for arguments in (["--template"], ["--renderer", "role_colon"]):
            done = tinkxx("render", "--jsonl", *arguments, given=good + "{}\n" + good)
            self.trouble(done, "line 2", "no messages")
            self.assertEqual(done.stdout.count("\n"), 1)
        self.trouble(tinkxx("render", "--renderer", "unheard-of", "--jsonl", given=good), "unheard-of")
        self.trouble(tinkxx("render", "--renderer", "role_colon", "--date", "today", given=good), "2025-11-30")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
