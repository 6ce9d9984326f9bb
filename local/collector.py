"""An OpenTelemetry collector with the components that examples/logs/collector.yaml names, built from Go modules, for the tests of that configuration.

It is not part of the local cluster: its build takes three minutes of CPU time, and only those tests need it.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from local import golang
from local.paths import cache, locked
from local.progress import Failure, say

SOURCES = Path(__file__).resolve().parent / "otel"
COMMAND = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w")


def _place() -> Path:
    """Return the path of the collector: its folder's name is a hash of all inputs."""
    digest = hashlib.sha256(repr(COMMAND).encode())
    for file in sorted(SOURCES.iterdir()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return cache() / "collector" / digest.hexdigest()[:16] / "otelcol"


def find() -> Path | None:
    """Return the path of the collector; None if it is not built."""
    place = _place()
    return place if place.exists() else None


def build() -> Path:
    """Return the path of the collector, and build it if it is missing."""
    place = _place()
    with locked(place.parent.with_suffix(".lock")):
        if not place.exists():
            _build(place)
    return place


def _build(place: Path) -> None:
    say("building the OpenTelemetry collector; the first build takes three minutes of CPU time")
    place.parent.mkdir(parents=True, exist_ok=True)
    new, folders = place.with_suffix(".new"), cache() / "collector" / "go"
    own = {"GOMODCACHE": f"{folders}/mod", "GOCACHE": f"{folders}/build", "CGO_ENABLED": "0"}
    command = [str(golang.find()), *COMMAND, "-o", str(new), "."]
    done = subprocess.run(
        command, cwd=SOURCES, env=golang.environment() | own, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"the collector was not built:\n{done.stderr[-2000:]}")
    new.replace(place)
    shutil.rmtree(folders, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(build())
    except Failure as failure:
        sys.exit(str(failure))
