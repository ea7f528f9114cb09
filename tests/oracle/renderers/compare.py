"""Compares our renderers with those of tinker-cookbook, over conversations that are made from a seed.

    compare.py FOLDER DRIVER [--count 2000] [--seed 1] [--renderers NAME,...]

Installs the cookbook, and what it needs but torch, into FOLDER/venv from the registry that pip is set up for; a
FOLDER that has it is used as it is. Exits with 1 if anything differs, with 77 if the registry cannot be reached.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

COOKBOOK = "0.5.8"
WITHOUT_DEPENDENCIES = [f"tinker-cookbook=={COOKBOOK}", "tinker==0.34.0"]
NEEDED = ["tokenizers==0.22.2", "pydantic", "pillow", "numpy", "anyio", "click", "distro", "httpx", "orjson", "protobuf",
          "rich", "sniffio", "typing-extensions", "zstandard"]
SKIPPED = 77


def environment(folder):
    python = folder / "venv" / "bin" / "python"
    if (folder / "venv" / "complete").exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in (NEEDED, ["--no-deps", *WITHOUT_DEPENDENCIES]):
        if subprocess.run([*pip, *arguments]).returncode != 0:
            print("renderers: skipped, since the Python registry cannot be reached")
            sys.exit(SKIPPED)
    (folder / "venv" / "complete").touch()
    return python


def is_error(value):
    return isinstance(value, dict) and "error" in value and len(value) == 1


def first_difference(ours, theirs, place=""):
    """Where two answers differ; refusals differ only from what is none."""
    if is_error(ours) or is_error(theirs):
        return None if is_error(ours) and is_error(theirs) else place
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if sorted(ours) != sorted(theirs):
            return f"{place}: members {sorted(ours)} and {sorted(theirs)}"
        found = (first_difference(ours[key], theirs[key], f"{place}/{key}") for key in ours)
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{place}: {len(ours)} and {len(theirs)} long"
        if ours == theirs:
            return None
        found = (first_difference(a, b, f"{place}/{i}") for i, (a, b) in enumerate(zip(ours, theirs)))
    else:
        return None if ours == theirs else place
    return next((one for one in found if one), None)


def names_of_all():
    import cookbook

    import inspect
    import re

    source = inspect.getsource(cookbook.renderers.get_renderer)
    names = re.findall(r'name == "(\w+)"', source)
    return [name for name in names if name != "tml_v0"]


def count_refusals(answer):
    values = [answer["prompt"], *answer["one"].values(), *answer["many"].values(),
              *(one["parsed"] for one in answer["responses"])]
    return sum(map(is_error, values)), len(values)


def compare(renderer, options):
    import conversations
    import cookbook

    tokenizer = cookbook.SmallTokenizer(cookbook.family_of(renderer))
    theirs = cookbook.Cookbook(tokenizer)
    stop = theirs.renderer({"renderer": renderer}).get_stop_sequences()
    stop = stop[0] if isinstance(stop[0], str) else stop
    draw = random.Random(f"{options.seed} {renderer}")
    requests = [conversations.request(draw, renderer, tokenizer, stop) for _ in range(options.count)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer"
        file.write_text(tokenizer.lines(), encoding="utf-8")
        text = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run([options.driver, file], input=text.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert len(answers) == len(requests)
    different, refused, total = 0, 0, 0
    for request, ours in zip(requests, answers):
        expected = json.loads(json.dumps(theirs.answer(request)))
        difference = first_difference(ours, expected)
        refusals = count_refusals(expected)
        refused, total = refused + refusals[0], total + refusals[1]
        if difference:
            different += 1
            if different <= options.show:
                report(renderer, request, difference, ours, expected, tokenizer)
    print(f"{renderer}: {len(requests)} conversations, {different} differ; {total} results compared, "
          f"of which {refused} are refusals", flush=True)
    return different


def at_place(value, place):
    for name in place.split(":")[0].split("/")[1:]:
        if isinstance(value, list):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            break
    return value


def report(renderer, request, difference, ours, theirs, tokenizer):
    print(f"--- {renderer}: {difference}")
    print("request:", json.dumps({k: v for k, v in request.items() if k != "responses"}, ensure_ascii=False)[:3000])
    if difference.startswith("/responses"):
        print("response:", repr(tokenizer.decode(request["responses"][int(difference.split("/")[2].split(":")[0])])))
    place = difference.split("/tokens")[0].split("/weights")[0]
    if place.startswith("/prompt"):
        place = "/prompt"
    for name, answer in (("ours", ours), ("theirs", theirs)):
        value = at_place(answer, place)
        print(f"{name}: ", json.dumps(value, ensure_ascii=False)[:2500])
        tokens = value.get("tokens") if isinstance(value, dict) else value
        if isinstance(tokens, list) and tokens and all(isinstance(token, int) for token in tokens):
            print(f"{name}: ", repr(tokenizer.decode(tokens)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("driver", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="how many differences are shown")
    parser.add_argument("--renderers", default="", help="those whose names begin so, with commas between")
    options = parser.parse_args()
    options.driver = options.driver.resolve()
    python = environment(options.folder.resolve())
    if Path(sys.prefix).resolve() != (options.folder / "venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    names = names_of_all()
    if options.renderers:
        names = [name for name in names if name.startswith(tuple(options.renderers.split(",")))]
    different = sum(compare(name, options) for name in names)
    print(f"{len(names)} renderers, {different} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
