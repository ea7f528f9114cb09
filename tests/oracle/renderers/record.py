"""Records what the cookbook makes of a few conversations, for tests that run without it.

    FOLDER/venv/bin/python record.py OUT     with the environment that compare.py made

Writes OUT/renderers.jsonl, with a request and its answer on a line each, and OUT/FAMILY.tokenizer.
"""

import json
import random
import sys
from pathlib import Path

import compare
import conversations
import cookbook

LONGEST = 7000
EACH = 2


def main():
    out = Path(sys.argv[1])
    lines, families = [], set()
    for name in compare.names_of_all():
        family = cookbook.family_of(name)
        tokenizer = cookbook.SmallTokenizer(family)
        if family not in families:
            families.add(family)
            (out / f"{family}.tokenizer").write_text(tokenizer.lines(), encoding="utf-8")
        theirs = cookbook.Cookbook(tokenizer)
        stop = theirs.renderer({"renderer": name}).get_stop_sequences()
        stop = stop[0] if isinstance(stop[0], str) else stop
        draw = random.Random(f"golden {name}")
        recorded = 0
        while recorded < EACH:
            request = conversations.request(draw, name, tokenizer, stop)
            if len(json.dumps(request["messages"])) > 500 or len(request["messages"]) < 2:
                continue
            answer = theirs.answer(request)
            refusals, total = compare.count_refusals(answer)
            text = json.dumps({"family": family, "request": request, "answer": answer}, ensure_ascii=False,
                              separators=(",", ":"))
            if refusals <= total // 4 and len(text) <= LONGEST:
                lines.append(text + "\n")
                recorded += 1
    (out / "renderers.jsonl").write_text("".join(lines), encoding="utf-8")
    print(len(lines), "requests,", sum(map(len, lines)) // 1024, "KiB")


if __name__ == "__main__":
    main()
