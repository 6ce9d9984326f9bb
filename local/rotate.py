"""`make rotating`: runs one of the tests that are too long for each run of `make test`; the number of commits selects it.

So each of these tests runs regularly. `make test` ends with one. Each part is a slice of a target of the Makefile that takes about
five minutes. A part that does not end within `BOUND` fails, because it hangs or has grown. A part that cannot run here prints why, and
does not fail.

    python -m local.rotate [PART] [--turn N]    runs the named part, or that of another turn; `list` prints the names
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from local.paths import DEFAULT_STATE as STATE
from local.paths import REPOSITORY
from local.progress import say

#: Seconds after which a part is stopped.
BOUND = 600
PYTHON = (sys.executable, "-m")

Commands = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Part:
    """A part of the rotation; `commands` receives how often the part has run, and returns the commands of the next slice."""

    name: str
    commands: Callable[[int], Commands]
    env: Mapping[str, str] = field(default_factory=dict)
    needs_cluster: bool = True
    needs_root: bool = True

    def obstacle(self) -> str:
        """Return why the part cannot run here; empty if it can."""
        if self.needs_cluster and not Path(STATE, "kubeconfig").exists():
            return "no local cluster runs: run `make demo`"
        if self.needs_root and os.geteuid() != 0:
            return "it needs root"
        return ""


def slices(items: Sequence[str], size: int, turn: int) -> list[str]:
    """Return the next `count` items, and continue at the beginning after the last item."""
    first = turn * size % len(items)
    return [*items, *items][first : first + size]


def faults(turn: int) -> Commands:
    """Return the commands for a slice of the faults of `make chaos`, once each."""
    cases = import_module("tests.faults.cases").CASES  # what it imports is dear, and needed here alone
    only = [word for name in slices([each.name for each in cases], 4, turn) for word in ("--only", name)]
    return [[*PYTHON, "tests.faults", "--repeats", "1", "--minutes", "6", *only]]


def kills(turn: int) -> Commands:
    """Return the command for one kind of kill of `make soak`, or for its changes."""
    (kind,) = slices([*import_module("tests.soak.kills").KILLS, "changes"], 1, turn)
    return [[*PYTHON, "tests.soak", "--rounds", "15", "--minutes", "4", "--only", kind]]


def accounting(turn: int) -> Commands:
    """Return the command for one file of `make test-accounting`."""
    (name,) = slices(["faults", "guard", "more", "ways"], 1, turn)
    return [
        ["/usr/bin/python3", "-m", "local.images", "build", "mariadb"],
        ["/usr/bin/python3", "-m", "local.mariadb_crd"],
        [*PYTHON, "pytest", f"tests/cluster/test_accounting_{name}.py"],
    ]


def bench(turn: int) -> Commands:
    """Return the commands for the counts of one bench and their limits: a thousand workers or fifty clusters with KWOK, or the local cluster at rest
    or at its start.
    """
    which = [
        ["local.bench.scale", "1000"],
        ["local.bench", "idle", "start", "--runs", "1"],
        ["local.bench.scale", "fifty"],
    ][turn % 3]
    return [[*PYTHON, *which, "--counts"]]


def make(target: str, *variables: str) -> Callable[[int], Commands]:
    """Return a function for the command of a target of the Makefile."""
    return lambda _: [["make", target, *variables]]


def search(_: int) -> Commands:
    """Return the commands of property tests on new random inputs."""
    folders = ["tests/unit/policy", "tests/unit/slurm", "tests/unit/render", "tests/unit/runtime", "tests/unit/agents"]
    return [[*PYTHON, "pytest", *folders]] * 3


PARTS = (
    Part("faults", faults),
    Part("search", search, {"SOPERATOR_SEARCH": "yes"}, needs_cluster=False, needs_root=False),
    Part("accounting", accounting, {"SOPERATOR_ACCOUNTING": "yes"}),
    Part("kills", kills),
    Part("outside", make("test-outside")),
    Part("mutants", make("mutants"), needs_cluster=False),
    Part("rest", make("test-rest")),
    Part("logs", make("test-logs"), needs_cluster=False),
    Part("newer-slurm", make("test-newer-slurm")),
    Part("bookworm", make("test-bookworm")),
    Part("fuzz", make("fuzz", "FUZZ_SECONDS=60"), needs_cluster=False, needs_root=False),
    Part("bench", bench),
)


def chosen(commits: int) -> tuple[Part, int]:
    """Return the part for the given number of commits, and how often it has run."""
    turn, number = divmod(commits, len(PARTS))
    return PARTS[number], turn


def commits() -> int:
    """Return the number of commits of the tree; a clone without history has one, which selects the second part."""
    words = ["git", "rev-list", "--count", "HEAD"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 1


def run(part: Part, turn: int, bound: float = BOUND) -> int:
    """Run a part; return 1 if one of its commands failed or was stopped."""
    if why := part.obstacle():
        say(f"the rotating part {part.name} is skipped: {why}")
        return 0
    began = time.monotonic()
    for command in part.commands(turn):
        say(f"the rotating part {part.name}: {' '.join(command)}")
        left = bound - (time.monotonic() - began)
        try:
            done = subprocess.run(
                command, cwd=REPOSITORY, env=os.environ | part.env, check=False, timeout=max(1.0, left)
            )
        except subprocess.TimeoutExpired:
            say(
                f"the rotating part {part.name} did not end within {bound:.0f} s: it hangs, or has grown: reduce its slice in local/rotate.py"
            )
            return 1
        if done.returncode:
            return 1
    say(f"the rotating part {part.name} took {time.monotonic() - began:.0f} s")
    return 0


def main() -> int:
    """Run the part that the number of commits selects, or the named part."""
    parser = argparse.ArgumentParser(prog="python -m local.rotate", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["list", *(each.name for each in PARTS)])
    parser.add_argument("--turn", type=int, help="which slice of it")
    options = parser.parse_args()
    part, turn = chosen(commits())
    if options.part == "list":
        print("\n".join(each.name + (" (now)" if each is part else "") for each in PARTS))
        return 0
    part = next((each for each in PARTS if each.name == options.part), part)
    return run(part, turn if options.turn is None else options.turn)


if __name__ == "__main__":
    sys.exit(main())
