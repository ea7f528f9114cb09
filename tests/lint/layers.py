"""Fails on an include that points up the layers, or up the folders of one.

    layers.py ROOT               check the tree at ROOT
    layers.py ROOT --self-test   plant wrong includes in copies of it; each has to be found

The layers are those of docs/architecture.md. A public header belongs where the table below puts it,
else to the layer whose folder has a source of the same name, else to the topmost one.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

# Layer -> the layers that it may include, itself apart.
BELOW = {
    "base": set(),
    "transport": {"base"},  # the interface alone
    "files": {"base"},  # what is kept on disk
    "net": {"transport", "base"},
    "types": {"transport", "base"},  # members of public values
    "wire": {"types", "base"},
    "text": {"types", "base"},  # tokenizers, templates and renderers
    "math": {"wire", "types", "base"},
    "options": {"net", "types", "transport", "base"},  # values alone, the network's among them
    "service": {"options", "math", "wire", "types", "transport", "files", "base"},
    "observe": {"service", "types", "transport", "base"},
    "client": {"observe", "service", "options", "math", "text", "net", "wire", "types", "transport", "files", "base"},
    "testing": {"options", "wire", "types", "transport", "base"},
    "engine": {"base"},
    "local": {"engine", "text", "wire", "types", "transport", "base"},
    "join": {"client", "local", "text", "types", "transport", "base"},  # headers that bring two of them together
}

# The folders of a layer, and of the program: each may include those before it. TOP is the files that stand in
# none. A layer that is missing here has no folders; a folder that is missing has none with an order.
TOP = "."
FOLDERS = {
    "base": ["common", "loop", "runtime"],
    "net": ["address", "stream", "tls", "dial", "http", "transport"],
    "wire": ["json", "values", "sampling", "training", "session", "rest", "server"],
    "text": ["errors", "unicode", "python", "regex", "tokenizer", "jinja", "chat", "render", "files"],
    "text/tokenizer": ["vocabulary", "models", "steps", "load", "run"],
    "text/jinja": ["values", "program", "convert", "syntax", "operators", "methods", "filters", "run"],
    "text/render": ["common", "parse", "core", "families"],
    "text/files": ["disk", "hub", "places"],
    "service": ["common", "text", "http", "limits", "retry", "breaker", "telemetry", "auth", "requests", "session",
                "results", "core", "sampling", "calls", "rest", "passes", "training", "recovery"],
    "client": ["options", TOP],
    "engine": ["common", "kernels", "files", "model", "train", "sample", TOP],
    "local": ["common", "store", "api", "listen", "results", "services", "sessions", "usage", "base_models", "weights",
              "checkpoints", "training", "sampling", "saves", "core", TOP],
    "cli": ["output", "frame", "dialog", "commands", TOP],
}

# Public headers by layer; folders end in a slash.
PUBLIC = {
    "base": ["error.hpp", "future.hpp", "log.hpp", "result.hpp", "runtime.hpp", "scheduler.hpp",
             "version.hpp", "detail/"],
    "transport": ["transport.hpp"],
    "net": ["net_transport.hpp"],
    "text": ["text/"],
    "types": ["types/", "http.hpp", "observer.hpp", "query.hpp", "status.hpp"],
    "options": ["options.hpp", "poll_backoff.hpp"],
    "service": ["call_options.hpp", "model_options.hpp", "retry_config.hpp"],
    "client": ["listing.hpp"],
    "testing": ["testing/"],
    "local": ["local/"],
}

# Files that belong to another layer than their folder says.
PLACED = {
    "src/pch.hpp": "client",  # what all of them have in common
    "include/tinkxx/local/service_client.hpp": "join",
    "include/tinkxx/text/hub_http.hpp": "join",
}

# What a layer must not know of, whoever offers it.
FOREIGN = {
    "base": ["boost/asio", "boost/beast", "boost/json", "boost/url", "nghttp2/", "openssl/", "zlib.h", "zstd.h"],
    "service": ["boost/asio", "boost/beast", "nghttp2/", "openssl/ssl"],
    "client": ["boost/asio", "boost/beast", "nghttp2/", "openssl/"],
    "net": ["boost/asio"],
    "local": ["boost/asio"],
}
# But for this: Beast's parsers take it, and nothing of Asio is compiled for it.
TAKEN = {("net", "boost/asio/buffer.hpp"), ("local", "boost/asio/buffer.hpp")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def public_layer(header, root):
    """The layer of <tinkxx/HEADER>."""
    for layer, names in PUBLIC.items():
        for name in names:
            if header == name or (name.endswith("/") and header.startswith(name)):
                return layer
    for layer in BELOW:
        folder = root / "src" / layer
        if any(any(folder.rglob(Path(header).with_suffix(suffix).name)) for suffix in (".cpp", ".hpp")):
            return layer
    return "client"


def layer_of(path, root):
    """The layer that a file belongs to; `outside` for programs that use the library."""
    parts = path.relative_to(root).parts
    placed = PLACED.get("/".join(parts))
    if placed:
        return placed
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else None
    if parts[:2] == ("include", "tinkxx"):
        return public_layer("/".join(parts[2:]), root)
    return "outside"


def wrong_folder(path, name, root):
    """Why a file of a layer must not include another one of it; None if it may."""
    parts, target = list(path.relative_to(root).parts), name.split("/")
    if parts[0] == "src":
        parts = parts[1:]
    else:
        target = parts[:1] + target  # a program names its files as from its own folder
    for depth in range(1, min(len(parts), len(target))):
        above = "/".join(parts[:depth])
        order = FOLDERS.get(above, [TOP] if depth == 1 else None)
        if order is None:
            return None
        own, other = (names[depth] if len(names) > depth + 1 else TOP for names in (parts, target))
        for folder in (own, other):
            if folder not in order:
                return f"{'no folder' if folder == TOP else folder} below {above} is not known to layers.py"
        if order.index(other) > order.index(own):
            return f"{above}/{own} must not include {name}: {other} stands above it"
        if own != other or own == TOP:
            return None
    return None


def wrong_includes(root):
    wrong = []
    folders = [root / name for name in ("src", "include", "cli", "examples")]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".cpp", ".hpp"))
    for path in files:
        layer = layer_of(path, root)
        public = path.is_relative_to(root / "include")
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            quoted, name = match.group(1) == '"', match.group(2)
            place = f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            beside = (path.parent / name).resolve()
            if name.startswith("tinkxx/"):
                target = public_layer(name.removeprefix("tinkxx/"), root)
            elif layer == "outside" and ((beside.is_file() and beside.is_relative_to(path.parent)) or
                                         (quoted and (root / path.relative_to(root).parts[0] / name).is_file())):
                program = path.relative_to(root).parts[0]
                if program in FOLDERS and (root / program / name).is_file():
                    why = wrong_folder(path, name, root)
                    if why:
                        wrong.append(f"{place}: {why}")
                continue  # a program's own header
            elif (root / "src" / name).is_file():
                target = name.split("/")[0]
                if public or layer == "outside":
                    wrong.append(f"{place}: {name} is private; only <tinkxx/...> may be used here")
                    continue
            elif quoted:
                wrong.append(f"{place}: {name} is not found; name it as from src/, e.g. \"net/address/url.hpp\"")
                continue
            else:
                wrong += [f"{place}: {layer} must not know of {name}"
                          for foreign in FOREIGN.get(layer, [])
                         if name.startswith(foreign) and (layer, name) not in TAKEN]
                continue
            if target == layer and path.is_relative_to(root / "src") and not name.startswith("tinkxx/"):
                why = wrong_folder(path, name, root)
                if why:
                    wrong.append(f"{place}: {why}")
            if layer == "outside" or target == layer:
                continue
            if layer not in BELOW:
                wrong.append(f"{place}: the layer {layer} is not known to layers.py")
            elif target not in BELOW[layer]:
                wrong.append(f"{place}: {layer} must not include {name}, which belongs to {target}")
    return wrong, len(files)


# A file, and a line in it that has to be refused.
PLANTED = [
    ("src/base/common/planted.cpp", "#include <tinkxx/transport.hpp>"),
    ("src/base/common/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/base/common/planted.cpp", "#include <boost/json.hpp>"),
    ("src/base/common/planted.cpp", '#include "base/loop/event_loop.hpp"'),
    ("src/net/address/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/net/address/planted.cpp", "#include <tinkxx/retry_config.hpp>"),
    ("src/service/http/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/service/http/planted.cpp", "  #  include <tinkxx/net_transport.hpp>"),
    ("src/service/text/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/service/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/service/elsewhere/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/base/common/planted.cpp", "#include <boost/asio/error.hpp>"),
    ("src/net/dial/planted.cpp", "#include <boost/asio/ip/tcp.hpp>"),
    ("src/net/http/planted.cpp", '#include "net/transport/pool.hpp"'),
    ("src/net/tls/planted.cpp", '#include "net/dial/dialer.hpp"'),
    ("src/wire/json/planted.cpp", '#include "wire/values/tensor.hpp"'),
    ("src/wire/values/planted.cpp", '#include "wire/server/requests.hpp"'),
    ("src/wire/planted.cpp", '#include "wire/json/json.hpp"'),
    ("src/text/unicode/planted.cpp", '#include "text/tokenizer/models/model.hpp"'),
    ("src/text/jinja/values/planted.cpp", '#include "text/jinja/program/machine.hpp"'),
    ("src/text/jinja/planted.cpp", '#include "text/jinja/program/machine.hpp"'),
    ("src/text/tokenizer/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/math/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/testing/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/local/planted.cpp", "#include <tinkxx/tinkxx.hpp>"),
    ("src/local/store/planted.cpp", '#include "local/core/core.hpp"'),
    ("src/local/training/planted.cpp", '#include "local/sampling/samplers.hpp"'),
    ("src/local/core/planted.cpp", '#include "local/in_process.hpp"'),
    ("src/local/elsewhere/planted.cpp", '#include "local/store/rows.hpp"'),
    ("src/engine/common/planted.cpp", '#include "engine/kernels/types.hpp"'),
    ("src/engine/model/planted.cpp", '#include "engine/jobs.hpp"'),
    ("src/engine/train/planted.cpp", '#include "engine/sample/sampler.hpp"'),
    ("src/observe/planted/planted.cpp", '#include "observe/metrics.hpp"'),
    ("cli/output/planted.cpp", '#include "commands/serve.hpp"'),
    ("cli/elsewhere/planted.cpp", '#include "output/terminal.hpp"'),
    ("include/tinkxx/error.hpp", "#include <tinkxx/transport.hpp>"),
    ("include/tinkxx/planted.hpp", '#include "net/address/url.hpp"'),
    ("examples/planted.cpp", '#include "net/address/url.hpp"'),
    ("cli/planted.cpp", "#include <base/loop/event_loop.hpp>"),
]


def self_test(root):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for name in ("src", "include", "cli"):
            shutil.copytree(root / name, copy / name)
        header = copy / "src" / "service" / "http" / "planted.hpp"
        header.parent.mkdir(exist_ok=True)
        header.write_text("#pragma once\n")
        before, _ = wrong_includes(copy)
        for file, line in PLANTED:
            target = copy / file
            target.parent.mkdir(parents=True, exist_ok=True)
            old = target.read_text() if target.exists() else None
            target.write_text((old or "#pragma once\n") + line + "\n")
            after, _ = wrong_includes(copy)
            found = [one for one in after if one not in before]
            if len(found) != 1 or not found[0].startswith(file):
                failures.append(f"not found: {line.strip()} in {file}; got {found}")
            if old is None:
                target.unlink()
            else:
                target.write_text(old)
    return failures


def main():
    root = Path(sys.argv[1]).resolve()
    if "--self-test" in sys.argv:
        problems, summary = self_test(root), f"{len(PLANTED)} planted includes"
    else:
        problems, count = wrong_includes(root)
        summary = f"the includes of {count} files"
    print("\n".join(problems) if problems else f"{summary}: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
