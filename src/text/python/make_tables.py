"""Writes tables.inc: what Python's str methods know of each character.

    make_tables.py > tables.inc

Everything is found by asking Python itself, so that templates get the answers they get there.
"""

import sys
import unicodedata

LAST = 0x10FFFF


def properties(code):
    c = chr(code)
    if 0xD800 <= code <= 0xDFFF:
        return 0
    number = 3 if c.isdecimal() else 2 if c.isdigit() else 1 if c.isnumeric() else 0
    # A sigma at the end of a word becomes another letter; what counts as its end tells what is ignored.
    ignored = (c + "\u03a3").lower()[-1] == "\u03c3" and ("A\u03a3" + c + "A").lower()[1] == "\u03c3"
    flags = [c.isprintable(), c.isalpha(), number & 1, number & 2, c.isupper(), c.islower(), c.isspace(),
             ignored, c.isidentifier(), ("a" + c).isidentifier()]
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def numbers(name, kind, values, width):
    print(f"constexpr {kind} {name}[] = {{")
    for i in range(0, len(values), width):
        print("    " + " ".join(f"{value}," for value in values[i:i + width]))
    print("};")


def property_table():
    steps, before = [], None
    for code in range(LAST + 1):
        now = properties(code)
        if now != before:
            steps.append(f"0x{code << 11 | now:X}U")
            before = now
    numbers("property_steps", "std::uint32_t", steps, 8)


def case_tables(name, change):
    """Runs of characters that move by the same distance, and those that become several."""
    runs, several = [], []
    for code in range(LAST + 1):
        if 0xD800 <= code <= 0xDFFF:
            continue
        new = change(chr(code))
        if new == chr(code):
            continue
        if len(new) > 1:
            several.append("{0x%X, {%s}}" % (code, ", ".join(f"0x{ord(c):X}" for c in new)))
            continue
        distance = ord(new) - code
        last = runs[-1] if runs else None
        if last and last[3] == distance and (code - last[1] == last[2] or (last[0] == last[1] and code - last[1] <= 2)):
            last[2] = code - last[1]
            last[1] = code
        else:
            runs.append([code, code, 1, distance])
    numbers(f"{name}_runs", "CaseRun", [f"{{0x{a:X}, 0x{b:X}, {c}, {d}}}" for a, b, c, d in runs], 4)
    numbers(f"{name}_several", "CaseSeveral", several, 3)


def main():
    print(f"// Made by make_tables.py with Unicode {unicodedata.unidata_version}; not to be edited.")
    print("// clang-format off")
    property_table()
    case_tables("upper", str.upper)
    case_tables("lower", str.lower)
    case_tables("title", str.title)
    case_tables("fold", str.casefold)
    print("// clang-format on")


if __name__ == "__main__":
    sys.exit(main())
