"""Writes snippets.jsonl: what transformers makes of each template in snippets.txt.

    make_snippets.py > snippets.jsonl          with the packages jinja2 and transformers installed

A template begins at a line that starts with `{`, blanks and `{`, or `a`; a line that continues one starts with
anything else. Each line of the result has the template and its text, or its error.
"""

import datetime
import json
import sys
from pathlib import Path

import transformers.utils.chat_template_utils as utils

VARIABLES = {"x": 1, "y": "abc", "z": {"a": {"b": [1, 2, 3]}}}
NOW = datetime.datetime(2026, 5, 28, 20, 30, 5)


class Pretended(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def snippets(text):
    lines = text.splitlines(keepends=True)
    found = []
    for line in lines:
        if found and not line.lstrip(" ").startswith("{") and line != "a\n":
            found[-1] += line
        elif found and found[-1].endswith("\\\n"):
            found[-1] += line
        else:
            found.append(line)
    return [one.removesuffix("\n") for one in found]


def main():
    utils.datetime = Pretended
    for source in snippets((Path(__file__).parent / "snippets.txt").read_text()):
        made = {"template": source}
        try:
            texts, generated = utils.render_jinja_template([[]], chat_template=source, return_assistant_tokens_mask=True,
                                                           **VARIABLES)
            made |= {"text": texts[0], "generated": generated[0]}
        except Exception as error:
            made["error"] = str(error) or type(error).__name__
            made["raised"] = type(error).__name__ == "TemplateError"
        print(json.dumps(made, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
