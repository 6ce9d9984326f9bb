"""`make rotating`: one of the tests that are too long for every run, chosen by the number of commits, so that none is only ever run by hand.

`make test` ends with it. Each part is a slice of a target of the Makefile that takes about five minutes; one that does not end in
`BOUND` is red, since it is stuck or has grown. Where a part cannot run it says so in a sentence, and nothing is red.

    python -m local.rotate [PART] [--turn N]    another part than the one whose turn it is; `list` names them all
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
    """What is run in a turn; `commands` are given the number of times that it was its turn, and take the next slice."""

    name: str
    commands: Callable[[int], Commands]
    env: Mapping[str, str] = field(default_factory=dict)
    needs_cluster: bool = True
    needs_root: bool = True

    def obstacle(self) -> str:
        """Why it cannot run here; empty where it can."""
        if self.needs_cluster and not Path(STATE, "kubeconfig").exists():
            return "there is no local cluster; `make demo` makes one"
        if self.needs_root and os.geteuid() != 0:
            return "it needs root"
        return ""


def slices(items: Sequence[str], size: int, turn: int) -> list[str]:
    """The next of so many items, from the beginning again after the last."""
    first = turn * size % len(items)
    return [*items, *items][first : first + size]


def faults(turn: int) -> Commands:
    """Some of the faults of `make chaos`, once each."""
    cases = import_module("tests.faults.cases").CASES  # what it imports is dear, and needed here alone
    only = [word for name in slices([each.name for each in cases], 4, turn) for word in ("--only", name)]
    return [[*PYTHON, "tests.faults", "--repeats", "1", "--minutes", "6", *only]]


def kills(turn: int) -> Commands:
    """One kind of kill of `make soak`, or its changes."""
    (kind,) = slices([*import_module("tests.soak.kills").KILLS, "changes"], 1, turn)
    return [[*PYTHON, "tests.soak", "--rounds", "15", "--minutes", "4", "--only", kind]]


def accounting(turn: int) -> Commands:
    """One file of `make test-accounting`."""
    (name,) = slices(["faults", "guard", "more", "ways"], 1, turn)
    return [
        ["/usr/bin/python3", "-m", "local.images", "build", "mariadb"],
        ["/usr/bin/python3", "-m", "local.mariadb_crd"],
        [*PYTHON, "pytest", f"tests/cluster/test_accounting_{name}.py"],
    ]


def bench(turn: int) -> Commands:
    """What a bench counts, beside its limits: a thousand workers or fifty clusters that KWOK plays, or the local cluster at rest and at its start."""
    which = [
        ["local.bench.scale", "1000"],
        ["local.bench", "idle", "start", "--runs", "1"],
        ["local.bench.scale", "fifty"],
    ][turn % 3]
    return [[*PYTHON, *which, "--counts"]]


def make(target: str, *variables: str) -> Callable[[int], Commands]:
    """A target as it is."""
    return lambda _: [["make", target, *variables]]


def search(_: int) -> Commands:
    """Properties on inputs that nobody has tried yet."""
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
    """The part whose turn it is after so many commits, and how often it has been."""
    turn, number = divmod(commits, len(PARTS))
    return PARTS[number], turn


def commits() -> int:
    """How many commits the tree has; a clone without history has one, and its part is the second."""
    words = ["git", "rev-list", "--count", "HEAD"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 1


def run(part: Part, turn: int, bound: float = BOUND) -> int:
    """Run a part; return 1 where a command of it failed or was stopped."""
    if why := part.obstacle():
        say(f"the rotating part {part.name} is left out: {why}")
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
                f"the rotating part {part.name} did not end within {bound:.0f} s: it is stuck, or it has grown: cut its slice in local/rotate.py"
            )
            return 1
        if done.returncode:
            return 1
    say(f"the rotating part {part.name} took {time.monotonic() - began:.0f} s")
    return 0


def main() -> int:
    """Run the part whose turn it is, or the one that is named."""
    parser = argparse.ArgumentParser(prog="python -m local.rotate", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["list", *(each.name for each in PARTS)])
    parser.add_argument("--turn", type=int, help="which slice of it")
    said = parser.parse_args()
    part, turn = chosen(commits())
    if said.part == "list":
        print("\n".join(each.name + (" (now)" if each is part else "") for each in PARTS))
        return 0
    part = next((each for each in PARTS if each.name == said.part), part)
    return run(part, turn if said.turn is None else said.turn)


if __name__ == "__main__":
    sys.exit(main())
