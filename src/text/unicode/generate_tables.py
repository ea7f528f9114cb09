"""Writes tables.inc, the Unicode tables of the tokenizers.

    generate_tables.py FOLDER16 FOLDER17 > tables.inc

FOLDER16 and FOLDER17 hold the Python package unicodedata2 in versions 16.0.0 and 17.0.1, e.g. by
`pip install --no-deps --target FOLDER16 unicodedata2==16.0.0`. Needs the package `regex` and perl, which
knows in which version of Unicode a character was first assigned.

The library that defines what a tokenizer.json means takes its character classes from several sources, each of
another version of Unicode; so do these tables:

    regular expressions       16    Oniguruma
    digits, lower case        17    Rust's standard library
    normal forms, marks        9    a crate; characters assigned later have no decomposition there
    classes of BERT            8    a crate
    scripts                    9    a table of its own
    clusters                  17    a crate
"""

import importlib
import subprocess
import sys

import regex

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def load(folder):
    sys.path.insert(0, folder)
    sys.modules.pop("unicodedata2", None)
    for name in [name for name in sys.modules if name.startswith("unicodedata2")]:
        del sys.modules[name]
    module = importlib.import_module("unicodedata2")
    sys.path.pop(0)
    return module


def assigned(version):
    """The characters that Unicode had in that version."""
    script = r'for my $c (0..0x10ffff){next if $c>=0xd800&&$c<=0xdfff; print "$c\n" if chr($c)=~/\p{In=%s}/}'
    out = subprocess.run(["perl", "-e", script % version], capture_output=True, text=True, check=True).stdout
    return {int(line) for line in out.split()}


def ranges(points):
    """[first, last] pairs of a set."""
    result = []
    for point in sorted(points):
        if result and result[-1][1] == point - 1:
            result[-1][1] = point
        else:
            result.append([point, point])
    return result


def emit(kind, name, items, width=100):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};\n")


def emit_set(name, points):
    emit("CharacterRange", name, [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(points)])


def classes(u16):
    category = {c: u16.category(chr(c)) for c in POINTS}
    alphabetic = regex.compile(r"\p{Alphabetic}|\p{Join_Control}|\p{M}|\p{Nd}|\p{Pc}")
    flags = []
    for c in POINTS:
        cat = category[c]
        value = 0
        value |= 1 if cat[0] == "L" else 0
        value |= 2 if cat[0] == "N" else 0
        value |= 4 if cat[0] == "M" else 0
        value |= 8 if cat in ("Lu", "Lt") else 0
        value |= 16 if cat == "Ll" else 0
        value |= 32 if cat[0] in "PS" else 0
        value |= 64 if cat[0] == "Z" or c in (9, 10, 11, 12, 13, 0x85) else 0
        value |= 128 if cat != "Cn" and alphabetic.match(chr(c)) else 0
        flags.append(value)
    runs, last = [], None
    for c, value in zip(POINTS, flags):
        if value != last:
            runs.append(f"{{{c:#x}, {value}}}")
            last = value
    emit("ClassRun", "class_runs", runs)
    return category


def lower_case(u17):
    runs = []  # [first, last, step, delta]
    mapping = {}
    for c in POINTS:
        value = lower_of(u17, c)
        if value != c:
            mapping[c] = value
    for c in sorted(mapping):
        delta = mapping[c] - c
        for step in (1, 2):
            if runs and runs[-1][3] == delta and runs[-1][1] + step == c and runs[-1][2] in (0, step):
                runs[-1][1], runs[-1][2] = c, step
                break
        else:
            runs.append([c, c, 0, delta])
    emit("LowerRun", "lower_runs", [f"{{{a:#x}, {b:#x}, {max(s, 1)}, {d}}}" for a, b, s, d in runs])


LOWER = {}


def lower_of(u17, c):
    """The simple lower case: regex folds like a newer Unicode than Python's own, so use its pairs."""
    if not LOWER:
        upper = regex.compile(r"\p{Changes_When_Lowercased}")
        known = {x for x in POINTS if u17.category(chr(x)) != "Cn"}
        lowers = {}
        for x in POINTS:
            own = chr(x).lower()
            if len(own) == 1 and own != chr(x):
                LOWER[x] = ord(own)
        missing = [x for x in POINTS if x in known and upper.match(chr(x)) and x not in LOWER and x != 0x130]
        if missing:
            # Its partner is what it matches without regard to case.
            small = [x for x in POINTS if x in known and u17.category(chr(x)) == "Ll"]
            text = "".join(map(chr, small))
            for x in missing:
                found = regex.search(regex.escape(chr(x)), text, regex.IGNORECASE | regex.V1)
                lowers[x] = ord(found.group())
            LOWER.update(lowers)
    return LOWER.get(c, c)


def normal_forms(u16, nine):
    classes_of = [(c, u16.combining(chr(c))) for c in POINTS if c in nine]
    runs = []
    for c, value in classes_of:
        if value == 0:
            continue
        if runs and runs[-1][1] + 1 == c and runs[-1][2] == value:
            runs[-1][1] = c
        else:
            runs.append([c, c, value])
    emit("CombiningRun", "combining_runs", [f"{{{a:#x}, {b:#x}, {v}}}" for a, b, v in runs])
    data, index, known = [], [], {}
    for form, name in (("NFD", "canonical"), ("NFKD", "compatible")):
        entries = []
        for c in sorted(nine):
            if 0xAC00 <= c <= 0xD7A3:
                continue
            full = u16.normalize(form, chr(c))
            if full == chr(c) or (form == "NFKD" and full == u16.normalize("NFD", chr(c))):
                continue
            if full not in known:
                known[full] = len(data)
                data += [f"{ord(x):#x}" for x in full]
            entries.append(f"{{{c:#x}, {known[full]}, {len(full)}}}")
        index.append((name, entries))
    for name, entries in index:
        emit("Decomposition", f"{name}_decompositions", entries)
    emit("char32_t", "decomposition_data", data)
    pairs = []
    for c in sorted(nine):
        if 0xAC00 <= c <= 0xD7A3:
            continue
        parts = u16.decomposition(chr(c)).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            continue
        a, b = (int(x, 16) for x in parts)
        if u16.normalize("NFC", chr(a) + chr(b)) == chr(c):
            pairs.append((a, b, c))
    emit("Composition", "compositions", [f"{{{a:#x}, {b:#x}, {c:#x}}}" for a, b, c in sorted(pairs)])


def scripts(nine):
    """Which script a character belongs to, as a number; what is not assigned belongs to any."""
    names = subprocess.run(
        ["perl", "-MUnicode::UCD=charscript,charscripts", "-e", "print join qq(\\n), sort keys %{charscripts()}"],
        capture_output=True, text=True, check=True).stdout.split()
    number = {name: i + 1 for i, name in enumerate(names)}
    # Written the same in East Asia.
    number["Hiragana"] = number["Katakana"] = number["Han"]
    value = {}
    for name in names:
        if name in ("Unknown", "Zzzz"):
            continue
        pattern = regex.compile(r"\p{Script=%s}" % name)
        for c in nine:
            if c not in value and pattern.match(chr(c)):
                value[c] = number[name]
    value[0x30FC] = number["Han"]
    # These had another script then.
    value.update({0x589: number["Common"], 0x61C: number["Common"], 0x953: number["Devanagari"], 0x954: number["Devanagari"]})
    value.pop(0x20, None)
    runs, last = [], 0
    for c in range(0x110000):
        now = value.get(c, 0)
        if now != last:
            runs.append(f"{{{c:#x}, {now}}}")
            last = now
    emit("ClassRun", "script_runs", runs)


def clusters(u17):
    """How a character joins others to a cluster; see ClusterKind."""
    kinds = ["CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V", "T"]
    text = [chr(c) for c in POINTS if u17.category(chr(c)) != "Cn" or 0xE0000 <= c < 0xE1000 or
            regex.match(r"\p{Extended_Pictographic}", chr(c))]
    value = {}
    for i, name in enumerate(kinds):
        pattern = regex.compile(r"\p{Grapheme_Cluster_Break=%s}" % name)
        value.update({ord(c): i + 1 for c in text if pattern.match(c)})
    for c in text:
        if regex.match(r"\p{Extended_Pictographic}", c):
            value.setdefault(ord(c), len(kinds) + 1)
    for flag, name in ((16, "Consonant"), (32, "Linker"), (64, "Extend")):
        pattern = regex.compile(r"\p{Indic_Conjunct_Break=%s}" % name)
        for c in text:
            if pattern.match(c):
                value[ord(c)] = value.get(ord(c), 0) | flag
    runs, last = [], 0
    for c in range(0x110000):
        now = value.get(c, 0)
        if now != last:
            runs.append(f"{{{c:#x}, {now}}}")
            last = now
    emit("ClassRun", "cluster_runs", runs)


def main():
    u16, u17 = load(sys.argv[1]), load(sys.argv[2])
    assert u16.unidata_version == "16.0.0" and u17.unidata_version.startswith("17.")
    eight, nine = assigned("8.0"), assigned("9.0")
    print("// Made by generate_tables.py. Do not edit.\n// clang-format off\n")
    category = classes(u16)
    emit_set("numeric_ranges", {c for c in POINTS if u17.category(chr(c))[0] == "N"})
    # Characters whose class has changed since version 8 have the old one.
    ascii_marks = {c for c in range(33, 127) if not chr(c).isalnum()}
    emit_set("bert_punctuation_ranges", {c for c in eight if category[c][0] == "P"} | ascii_marks | {0x166D, 0x111C9})
    emit_set("bert_other_ranges", {c for c in eight if category[c] in ("Cc", "Cf", "Co")})
    mn_now, mn_then = {0x1885, 0x1886, 0xA9BD, 0x111C9}, {0x1734, 0x1171E}
    emit_set("bert_accent_ranges", {c for c in eight if category[c] == "Mn"} - mn_now | mn_then)
    emit_set("mark_ranges", {c for c in nine if category[c][0] == "M"} - {0x111C9} | {0x1CF2, 0x1CF3})
    lower_case(u17)
    normal_forms(u16, nine)
    scripts(nine)
    clusters(u17)
    print("// clang-format on")


if __name__ == "__main__":
    main()
