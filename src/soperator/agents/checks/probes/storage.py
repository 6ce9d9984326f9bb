"""Measures file systems: their usage, whether they are writable, and their latency."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from soperator.agents.checks.probes.place import Given, ProbePaths
from soperator.checks.check import Reading, Value

_TRIES = 5


def filesystem(given: Given, _: ProbePaths) -> list[Reading]:
    """`used` and `inodes` in per cent, as in df(1), `free` in MiB, `readonly`; or `error`. `given.paths` maps names to paths."""
    return [_filesystem(name, path) for name, path in _paths(given).items()]


def latency(given: Given, _: ProbePaths) -> list[Reading]:
    """`ms`: the duration of a look-up of a name, the median of five.

    The names are new each time, so that no cache answers, and no file is created.
    """
    return [_latency(name, path) for name, path in _paths(given).items()]


def _paths(given: Given) -> Mapping[str, str]:
    paths: Mapping[str, str] = given["paths"]
    return paths


def _filesystem(name: str, path: str) -> Reading:
    try:
        found = os.statvfs(Path(path))
    except OSError as error:
        return {"of": name, "error": error.strerror or str(error)}
    reading: dict[str, Value] = {"of": name, "readonly": bool(found.f_flag & os.ST_RDONLY)}
    used, room = found.f_blocks - found.f_bfree, found.f_blocks - found.f_bfree + found.f_bavail
    if room:
        reading |= {"used": round(100 * used / room, 1), "free": found.f_bavail * found.f_frsize // 2**20}
    if found.f_files:
        reading["inodes"] = round(100 * (found.f_files - found.f_ffree) / found.f_files, 1)
    return reading


def _latency(name: str, path: str) -> Reading:
    took = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        try:
            Path(path, f".soperator-{os.urandom(6).hex()}").stat()
        except FileNotFoundError:
            pass
        except OSError as error:
            return {"of": name, "error": error.strerror or str(error)}
        took.append(time.perf_counter() - began)
    return {"of": name, "ms": round(1000 * sorted(took)[_TRIES // 2], 2)}
