"""The comparison itself; run.py starts it where the reference programs are installed.

    compare.py PROGRAM TEXTS SEED CACHE LIBRARY:NAME:FOLDER...
"""

import base64
import json
import random
import subprocess
import sys
import zlib
from pathlib import Path

from texts import Texts

BATCH = 2000
SHOWN = 5  # differences of one kind and tokenizer that are printed


class Reference:
    """Hugging Face's `tokenizers`, of one tokenizer.json."""

    def __init__(self, name, folder, cache):
        from tokenizers import Tokenizer
        self.name, self.file, self.options = name, Path(folder) / "tokenizer.json", []
        self.tokenizer = Tokenizer.from_file(str(self.file))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        added = self.tokenizer.get_added_tokens_decoder()
        self.special = [token.content for token in added.values()]
        self.limit = max(self.tokenizer.get_vocab().values()) + 1
        self.checks = ["ids", "no special", "offsets", "count", "decoded", "without special", "any ids"]

    def encode(self, texts, special):
        return [(one.ids, one.offsets) for one in self.tokenizer.encode_batch(texts, add_special_tokens=special)]

    def decode(self, lists, skip_special):
        return self.tokenizer.decode_batch(lists, skip_special_tokens=skip_special)


class RankedReference:
    """tiktoken, with the ranks of a tokenizer.json that has the same vocabulary."""

    def __init__(self, name, folder, cache):
        import tiktoken
        from tiktoken_ext import openai_public
        ranks = ranks_of(Path(folder) / "tokenizer.json")
        openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
        openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: ranks
        self.encoding = tiktoken.Encoding(**getattr(openai_public, name)())
        self.name, self.options = name + " (tiktoken)", []
        self.file = Path(cache) / f"{name}.tiktoken"
        self.file.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
        self.special = sorted(self.encoding.special_tokens_set)
        self.limit = self.encoding.n_vocab
        self.checks = ["ids", "no special", "count", "decoded"]

    def encode(self, texts, special):
        return [(ids, None) for ids in self.encoding.encode_batch(texts, allowed_special="all", num_threads=2)]

    def decode(self, lists, skip_special):
        return [self.encoding.decode(ids) for ids in lists]


def ranks_of(file):
    """From the letters by which byte-level vocabularies spell bytes."""
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
    vocabulary = json.loads(file.read_text(encoding="utf-8"))
    special = {token["content"] for token in vocabulary["added_tokens"]}
    return {bytes(byte_of[letter] for letter in token): rank for token, rank in
            sorted(vocabulary["model"]["vocab"].items(), key=lambda item: item[1]) if token not in special}


class Ours:
    """The program, which answers each line by a line."""

    def __init__(self, program, command, file, *options):
        self.command = [program, command, "--tokenizer", str(file), "--jsonl", *options]
        self.process = None

    def all(self, values):
        lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        done = subprocess.run(self.command, input=lines.encode(), capture_output=True, check=False)
        out = done.stdout.decode().split("\n")[:-1]  # not splitlines: that would cut at U+2028
        if done.returncode != 0 or len(out) != len(values):
            raise SystemExit(f"{' '.join(self.command)} ended with {done.returncode} after {len(out)} of "
                             f"{len(values)} lines: {done.stderr.decode(errors='replace')}")
        return [json.loads(line) for line in out]

    def one(self, value):
        """Without a new process for each."""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def byte_offsets(text, offsets):
    """Python counts characters, the program bytes of UTF-8."""
    at, total = [0], 0
    for character in text:
        total += len(character.encode())
        at.append(total)
    return [[at[begin], at[end]] for begin, end in offsets]


def minimal(value, differs):
    """The shortest part of a text or list that still differs, as far as leaving parts out goes."""
    size = len(value) // 2
    while size >= 1:
        begin, shorter = 0, False
        while begin < len(value):
            without = value[:begin] + value[begin + size:]
            if differs(without):
                value, shorter = without, True
            else:
                begin += size
        if not shorter or size > len(value):
            size //= 2
    return value


class Comparison:
    def __init__(self, program, reference):
        self.reference = reference
        run = lambda command, *options: Ours(program, command, reference.file, *options, *reference.options)  # noqa: E731
        self.runs = {"ids": run("tokenize"), "no special": run("tokenize", "--no-special"),
                     "offsets": run("tokenize", "--offsets"), "count": run("tokenize", "--count"),
                     "decoded": run("detokenize"), "without special": run("detokenize", "--skip-special"),
                     "any ids": run("detokenize")}
        self.different = {check: 0 for check in reference.checks}
        self.examples = []
        self.bytes = 0

    def expected(self, check, values):
        if check in ("decoded", "without special", "any ids"):
            return self.reference.decode(values, check == "without special")
        encoded = self.reference.encode(values, check != "no special")
        if check == "offsets":
            return [{"ids": ids, "offsets": byte_offsets(text, offsets)}
                    for text, (ids, offsets) in zip(values, encoded)]
        return [len(ids) if check == "count" else ids for ids, _ in encoded]

    def check(self, check, values):
        expected = self.expected(check, values)
        for value, theirs, ours in zip(values, expected, self.runs[check].all(values)):
            if theirs == ours:
                continue
            self.different[check] += 1
            if self.different[check] <= SHOWN:
                self.examples.append(self.example(check, value))
        return expected

    def example(self, check, value):
        ours = self.runs[check]
        least = minimal(value, lambda part: self.expected(check, [part])[0] != ours.one(part))
        text = (f"{self.reference.name}, {check}: {json.dumps(least)}\n"
                f"    theirs {json.dumps(self.expected(check, [least])[0])[:600]}\n"
                f"    ours   {json.dumps(ours.one(least))[:600]}")
        ours.end()
        return text

    def compare(self, texts, chance):
        self.bytes += sum(len(text.encode()) for text in texts)
        ids = self.check("ids", texts)
        for check in ("no special", "offsets", "count"):
            if check in self.different:
                self.check(check, texts)
        self.check("decoded", ids)
        if "without special" in self.different:
            self.check("without special", ids)
        if "any ids" in self.different:  # among them halves of characters, and what no encoder puts side by side
            self.check("any ids", [[chance.randrange(self.reference.limit) for _ in range(chance.randint(0, 12))]
                                   for _ in range(len(texts) // 4)] +
                       [one[chance.randint(0, 3):len(one) - chance.randint(0, 3)] for one in ids[::4]])


def main():
    program, count, seed, cache = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    references = {"tokenizers": Reference, "tiktoken": RankedReference}
    columns = ["ids", "no special", "offsets", "count", "decoded", "without special", "any ids"]
    print(f"differences in {count} texts for each tokenizer, seed {seed}")
    print(f"{'tokenizer':22} {'MB':>7}  " + "  ".join(f"{column:>15}" for column in columns), flush=True)
    examples = []
    for argument in sys.argv[5:]:
        library, name, folder = argument.split(":", 2)
        reference = references[library](name, folder, cache)
        comparison = Comparison(program, reference)
        own_seed = seed ^ zlib.crc32(name.encode())
        texts, chance = Texts(own_seed, reference.special).make(count), random.Random(own_seed + 1)
        for begin in range(0, count, BATCH):
            comparison.compare(texts[begin:begin + BATCH], chance)
        examples += comparison.examples
        print(f"{reference.name:22} {comparison.bytes / 1e6:7.1f}  " + "  ".join(
            f"{comparison.different.get(column, '-'):>15}" for column in columns), flush=True)
    if examples:
        print(f"\nthe first {len(examples)} differences, made as short as they can be:")
        print("\n".join(examples))
    return 1 if examples else 0


if __name__ == "__main__":
    sys.exit(main())
