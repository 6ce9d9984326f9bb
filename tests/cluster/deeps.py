"""Deep checks as Slurm jobs on nodes of the cluster, and the faults that they are to find: a throttled worker, a slow card, a slow way.

The faults are made from outside the pods, by root of the machine that they run on, so they are for the local cluster. All nodes share two
cores with everything else, so limits are wide, and of several runs the best counts: nothing makes a machine faster than it is, and a
fault makes it many times slower.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from soperator.checks import deep_evaluate
from soperator.checks.check import Reading
from soperator.checks.deep_check import (
    DeepCheck,
    DeepRule,
    command,
    shipped_deep,
)
from soperator.policy.healthcheck import pairwise_search
from tests.cluster.lab import Lab
from tests.cluster.processes import processes

SLURMD = "/usr/sbin/slurmd"
#: So much worse than the others is bad here, in percent.
WIDE = 60
#: What a throttled worker has of one core, and what a slow card or way carries.
SHARE, MBITS = 0.1, 20
PATIENCE = 120.0


def shipped(name: str, value: str, **given: float) -> DeepCheck:
    """A shipped check that runs for a short time and is judged by one of its values, with a wide limit."""
    check = next(each for each in shipped_deep() if each.name == name)
    rule = next(each for each in check.rules if each.deviates and each.deviates.value == value)
    return replace(check, given={**check.given, **given}, rules=(_wide(rule),))


def _wide(rule: DeepRule) -> DeepRule:
    assert rule.deviates
    return replace(rule, deviates=replace(rule.deviates, percent=WIDE))


@dataclass(frozen=True)
class Bench:
    """Nodes on which a user runs deep checks."""

    lab: Lab
    nodes: Sequence[str]
    user: str = "alice"

    def run(self, check: DeepCheck, nodes: Sequence[str]) -> list[Reading]:
        """The readings of one job of a check."""
        how = (
            f"--exclusive --nodes={len(nodes)} --ntasks-per-node=1 --nodelist={','.join(nodes)} --cpu-bind=none --mem=0"
        )
        said = self.lab.ssh(self.user, f"srun --immediate=60 {how} {' '.join(command(check))}")
        return deep_evaluate.named(json.loads(said.splitlines()[-1])["readings"], nodes)

    def each(self, check: DeepCheck) -> list[Reading]:
        """The readings of all nodes, one after the other, for they share the machine's cores."""
        return [reading for node in self.nodes for reading in self.run(check, [node])]

    def best(self, check: DeepCheck) -> Reading:
        """The best of some readings of all nodes together."""
        found = _Best(check)
        for _ in range(3):
            found.keep(self.run(check, self.nodes)[0])
        return found.readings[0]

    def bad_nodes(self, check: DeepCheck, wanted: set[str]) -> list[Reading]:
        """The readings with which a check fails these nodes and no other; fails with them where that does not come to be."""
        best = _Best(check)

        def failing() -> set[str]:
            for each in self.each(check):
                best.keep(each)
            judged = deep_evaluate.judge(check, best.readings, (), self.nodes)
            return {node for each in judged if each.outcome == "fail" for node in each.nodes}

        return best.until(lambda: failing() == wanted)

    def search(
        self, check: DeepCheck, bad: tuple[str, ...] = (), links: tuple[pairwise_search.Pair, ...] = ()
    ) -> list[Reading]:
        """The readings with which a search finds these nodes and ways and no others; fails with them where that does not come to be."""
        best = _Best(check)

        def found() -> pairwise_search.Search:
            for each in best.readings:
                best.keep(self.run(check, deep_evaluate.nodes_of(each))[0])
            while not (search := pairwise_search.search_check(check, self.nodes, best.readings)).done:
                for both in search.runs:
                    best.keep(self.run(check, both)[0])
            return search

        return best.until(lambda: (search := found()).bad == bad and search.links == links)


class _Best:
    """The best reading of each node or pair: whoever was slow by chance is not slow again and again."""

    def __init__(self, check: DeepCheck) -> None:
        self._value = check.deviations[0].value
        self._found: dict[str, Reading] = {}

    @property
    def readings(self) -> list[Reading]:
        """Those so far."""
        return list(self._found.values())

    def keep(self, reading: Reading) -> None:
        """Take it where there is no better one."""
        before = self._found.get(str(reading["of"]))
        if before is None or float(reading[self._value]) > float(before[self._value]):
            self._found[str(reading["of"])] = reading

    def until(self, ask: Callable[[], bool]) -> list[Reading]:
        """Measure until it is as it should be, and return what was read."""
        end = time.monotonic() + PATIENCE
        while not ask():
            assert time.monotonic() < end, f"not within {PATIENCE:.0f} s; the best readings are {self.readings}"
        return self.readings


def slurmd_of(node: str) -> int:
    """The process of a node's slurmd, as this machine sees it."""
    return max(processes(SLURMD, node))


@contextmanager
def throttled(node: str) -> Iterator[None]:
    """Let all of a node's slurmd and its jobs have a share of one core."""
    file, value = _quota(slurmd_of(node))
    before = file.read_text()
    file.write_text(value)
    try:
        yield
    finally:
        file.write_text(before)


def _quota(pid: int) -> tuple[Path, str]:
    """The file that holds a process' share of the cores, and what to write into it; cgroups of version 1 or 2."""
    micros = int(100_000 * SHARE)
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/cpu{path}/cpu.cfs_quota_us"), str(micros)
    return Path(f"/sys/fs/cgroup{path}/cpu.max"), f"{micros} 100000"


@contextmanager
def slow_card(node: str) -> Iterator[None]:
    """Let everything that leaves a node's network card wait for its turn."""
    with _shaped(node, default="10"):
        yield


@contextmanager
def slow_way(node: str, other: str) -> Iterator[None]:
    """Let what a node sends to another one wait for its turn, and nothing else. This kernel has no classifier; nftables sets the class."""
    address = _in_net(other, "ip", "-4", "-json", "addr", "show", "dev", "eth0")
    to = json.loads(address)[0]["addr_info"][0]["local"]
    rule = f'ip daddr {to} meta priority set "1:10"'
    rules = f"table ip deep {{ chain out {{ type filter hook output priority 0; {rule}; }}; }}"
    with _shaped(node, default="0"):
        _in_net(node, "nft", rules)
        try:
            yield
        finally:
            _in_net(node, "nft", "delete table ip deep")


@contextmanager
def _shaped(node: str, default: str) -> Iterator[None]:
    """A queue on a node's card whose class 10 is slow; class 0 does not wait."""
    _in_net(node, "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", default)
    try:
        _in_net(node, *f"tc class add dev eth0 parent 1: classid 1:10 htb rate {MBITS}mbit burst 32k".split())
        yield
    finally:
        _in_net(node, "tc", "qdisc", "del", "dev", "eth0", "root")


def _in_net(node: str, *command: str) -> str:
    """What a command of this machine printed in a node's network."""
    words = ["nsenter", "-t", str(slurmd_of(node)), "--net", *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout
