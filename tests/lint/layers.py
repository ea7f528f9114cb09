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
    "net": {"transport", "base"},
    "types": {"transport", "base"},  # members of public values
    "wire": {"types", "base"},
    "text": {"types", "base"},  # tokenizers
    "math": {"wire", "types", "base"},
    "service": {"math", "wire", "types", "transport", "base"},
    "observe": {"service", "types", "transport", "base"},
    "client": {"observe", "service", "math", "net", "wire", "types", "transport", "base"},
    "testing": {"transport", "base"},
    "engine": {"base"},
    "local": {"engine", "wire", "types", "transport", "base"},
    "join": {"client", "local", "types", "transport", "base"},  # the header that makes a client of a server
}

# The folders of a layer that has an order within: each may include those before it.
FOLDERS = {
    "net": ["address", "stream", "tls", "dial", "http", "transport"],
    "wire": ["json", "values", "sampling", "training", "session", "server"],
    "text": ["errors", "unicode", "regex", "tokenizer", "render"],
    "service": ["common", "text", "http", "limits", "retry", "breaker", "telemetry", "auth", "requests", "session",
                "results", "core", "sampling", "calls", "passes", "training", "recovery"],
}

# Public headers by layer; folders end in a slash.
PUBLIC = {
    "base": ["error.hpp", "future.hpp", "log.hpp", "result.hpp", "runtime.hpp", "scheduler.hpp",
             "version.hpp", "detail/"],
    "transport": ["transport.hpp"],
    "net": ["net_transport.hpp"],
    "text": ["text/"],
    "types": ["types/", "http.hpp", "observer.hpp", "query.hpp", "status.hpp"],
    "service": ["call_options.hpp", "retry_config.hpp"],
    "testing": ["testing/"],
    "local": ["local/"],
}

# Files that belong to another layer than their folder says.
PLACED = {
    "src/base/transport.cpp": "transport",  # the few members of the interface that need a .cpp
    "src/pch.hpp": "client",  # what all of them have in common
    "include/tinkxx/local/service_client.hpp": "join",
}

# What a layer must not know of, whoever offers it.
FOREIGN = {
    "base": ["boost/asio", "boost/beast", "boost/json", "boost/url", "nghttp2/", "openssl/", "zlib.h", "zstd.h"],
    "service": ["boost/asio", "boost/beast", "nghttp2/", "openssl/ssl"],
    "client": ["boost/asio", "boost/beast", "nghttp2/", "openssl/"],
}

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
    """Why a file of a layer with folders must not include another one of it; None if it may."""
    parts, target = path.relative_to(root).parts, name.split("/")
    layer = target[0]
    order = FOLDERS.get(layer)
    if order is None:
        return None
    own, other = parts[2] if len(parts) > 3 else None, target[1] if len(target) > 2 else None
    for folder in (own, other):
        if folder not in order:
            return f"{folder or 'no folder'} below src/{layer} is not known to layers.py"
    if order.index(other) > order.index(own):
        return f"{layer}/{own} must not include {name}: {other} stands above it"
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
                          for foreign in FOREIGN.get(layer, []) if name.startswith(foreign)]
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
    ("src/base/planted.cpp", "#include <tinkxx/transport.hpp>"),
    ("src/base/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/base/planted.cpp", "#include <boost/json.hpp>"),
    ("src/net/address/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/net/address/planted.cpp", "#include <tinkxx/retry_config.hpp>"),
    ("src/service/http/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/service/http/planted.cpp", "  #  include <tinkxx/net_transport.hpp>"),
    ("src/service/text/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/service/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/service/elsewhere/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/base/planted.cpp", "#include <boost/asio/error.hpp>"),
    ("src/net/http/planted.cpp", '#include "net/transport/pool.hpp"'),
    ("src/net/tls/planted.cpp", '#include "net/dial/dialer.hpp"'),
    ("src/wire/json/planted.cpp", '#include "wire/values/tensor.hpp"'),
    ("src/wire/values/planted.cpp", '#include "wire/server/requests.hpp"'),
    ("src/wire/planted.cpp", '#include "wire/json/json.hpp"'),
    ("src/math/planted.cpp", '#include "service/http/planted.hpp"'),
    ("src/testing/planted.cpp", '#include "net/address/url.hpp"'),
    ("src/local/planted.cpp", "#include <tinkxx/tinkxx.hpp>"),
    ("include/tinkxx/error.hpp", "#include <tinkxx/transport.hpp>"),
    ("include/tinkxx/planted.hpp", '#include "net/address/url.hpp"'),
    ("examples/planted.cpp", '#include "net/address/url.hpp"'),
    ("cli/planted.cpp", "#include <base/event_loop.hpp>"),
]


def self_test(root):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for name in ("src", "include"):
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
