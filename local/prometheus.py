"""Prometheus and promtool from Debian's packages, with the files of its web pages; no package is installed, and no service starts."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from local.paths import cache
from local.progress import say

PROGRAMS = ("promtool", "prometheus")
_LARGE = 1 << 20


def folder() -> Path:
    """Return the folder of the programs."""
    return cache() / "prometheus"


def find(program: str) -> Path | None:
    """Return the path of one of PROGRAMS; None if it is missing."""
    kept = folder() / program
    found = str(kept) if kept.exists() else shutil.which(program)
    return Path(found) if found else None


def with_pages(argv: list[str]) -> list[str]:
    """Return the command that executes `argv` with Prometheus' web pages mounted at /usr/share, where Debian's build reads them."""
    share = folder() / "share"
    if not share.exists():
        return argv
    return ["unshare", "--mount", "sh", "-c", f"mount --bind '{share}' /usr/share && exec \"$@\"", "sh", *argv]


def fetch() -> None:
    """Download both programs; if Debian's archive does not have them, print that, because only monitoring and its tests need them."""
    if all(find(program) for program in PROGRAMS):
        return
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        try:
            _unpack(Path(name))
        except subprocess.CalledProcessError as error:
            say(f"Prometheus cannot be downloaded, so alert rules are not tested: {error.stderr.strip()[-200:]}")
            return
        _keep(Path(name, "usr"))
    say("Prometheus and promtool: fetched")


def _unpack(into: Path) -> None:
    """Download Debian's package into a folder, and the packages with its web pages."""

    def run(*words: str) -> str:
        return subprocess.run(words, cwd=into, capture_output=True, text=True, check=True).stdout

    run("apt-get", "-qq", "download", "prometheus")
    depends = run("sh", "-c", "dpkg-deb -f prometheus_*.deb Depends")
    pages = re.findall(r"\b(?:libjs|fonts)-[a-z0-9.+-]+", depends)
    run("apt-get", "-qq", "download", *pages, *(["libjs-d3"] if "libjs-rickshaw" in pages else []))
    run("sh", "-c", "for each in *.deb; do dpkg-deb -x $each .; done")


def _keep(usr: Path) -> None:
    """Move the needed files to the cache, each part atomically."""
    folder().mkdir(parents=True, exist_ok=True)
    for part in (*(f"bin/{program}" for program in PROGRAMS), "share"):
        new = folder() / f".{Path(part).name}.{os.getpid()}"
        shutil.move(usr / part, new)
        for large in [
            each for each in new.rglob("*") if part == "share" and each.is_file() and each.stat().st_size > _LARGE
        ]:
            large.unlink()  # 210 MB of time zones, most of them
        if part == "share" and (folder() / part).exists():
            shutil.rmtree(new)
            continue
        new.rename(folder() / Path(part).name)
