"""Deep checks under faults on a running cluster, and the report of what they measured.

python3 -m tests.soak.deep [--nodes 4]
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from local import demo
from local.demo import CLUSTER, NAMESPACE, local_target
from soperator.checks.check import Reading
from soperator.checks.deep_check import DeepCheck, shipped_deep
from tests.cluster import deeps
from tests.cluster.conftest import make_user
from tests.cluster.deeps import Bench
from tests.cluster.lab import Lab, Timings

REPORT = demo.ROOT / "docs" / "reports" / "deep-checks.md"
_PER_NODE = {"cpu": {"seconds": 2}, "memory": {"seconds": 1}, "disk": {"mib": 64}, "jail": {"mib": 16, "files": 50}}


@dataclass(frozen=True)
class Scene:
    """One fault, and what a check made of it: who was found, by which readings, in how many seconds."""

    fault: str
    check: str
    found: str
    readings: Sequence[Reading]
    seconds: float


def main() -> int:
    """Play all scenes and write the report; a scene that does not find what it should ends it with what was read instead."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak.deep", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    said = parser.parse_args()
    target = local_target()
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    make_user(lab, "alice")
    with lab.pair_nodes("deep", said.nodes, patience=120) as nodes:
        bench = Bench(lab, nodes)
        healthy = {name: bench.each(_short(name, given)) for name, given in _PER_NODE.items()}
        scenes = list(play(bench))
    REPORT.write_text(report(said.nodes, healthy, scenes))
    print(REPORT.read_text())
    return 0


def _short(name: str, given: dict[str, int]) -> DeepCheck:
    check = next(each for each in shipped_deep() if each.name == name)
    return replace(check, given={**check.given, **given})


def play(bench: Bench) -> Iterator[Scene]:
    """Nothing is wrong; then a throttled worker, a slow card and a slow way, each measured by what is to find it."""
    cpu, ring = deeps.shipped("cpu", "gflops", seconds=1), deeps.shipped("allreduce", "busbw", seconds=1, mib=4)
    network = deeps.shipped("network", "gbps", seconds=0.5)
    first, second, *_, last = bench.nodes
    slow = f"sends at {deeps.MBITS} Mbit/s"

    def group() -> list[Reading]:
        reading = bench.best(ring)
        assert reading["wrong"] == 0
        return [reading]

    right = ("allreduce of all", "all sums right", group)
    yield from _scene("none", nullcontext(), ("cpu", "nobody", lambda: bench.bad_nodes(cpu, set())), right)
    yield from _scene("none", nullcontext(), ("network by pairs", "nobody", lambda: bench.search(network)))
    yield from _scene(
        f"{last} has {deeps.SHARE:.0%} of a core",
        deeps.throttled(last),
        ("cpu", last, lambda: bench.bad_nodes(cpu, {last})),
        right,
        ("allreduce by pairs", last, lambda: bench.search(ring, bad=(last,))),
    )
    by_pairs = ("network by pairs", last, lambda: bench.search(network, bad=(last,)))
    yield from _scene(f"{last} {slow}", deeps.slow_card(last), by_pairs)
    found = f"the path between {first} and {second}"
    way = ("network by pairs", found, lambda: bench.search(network, links=((first, second),)))
    yield from _scene(f"{first} {slow} to {second}", deeps.slow_way(first, second), way)


def _scene(
    fault: str, spoil: AbstractContextManager[None], *plays: tuple[str, str, Callable[[], list[Reading]]]
) -> Iterator[Scene]:
    """Each play: by what is measured, who is found, and how; it fails where another one is found."""
    with spoil:
        for name, found, act in plays:
            began = time.monotonic()
            readings = act()
            yield Scene(fault, name, found, readings, time.monotonic() - began)


def report(count: int, healthy: dict[str, list[Reading]], scenes: Sequence[Scene]) -> str:
    """The page."""
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = [
        "# Deep checks under faults",
        "",
        f"Written by `python3 -m tests.soak.deep` on {now}: {count} workers in pods of the local cluster, {os.cpu_count()} cores for all",
        f"of them, Linux {os.uname().release}, beside other work. Jobs are short: the numbers say what is found, not how fast the machine is.",
        f"A value is bad here when it is {deeps.WIDE} % worse than its peers', and of several runs the best counts.",
        "",
        "| fault | measured by | found | the best readings | s |",
        "|---|---|---|---|---|",
        *(_row(each) for each in scenes),
        "",
        "## Without a fault",
        "",
        "| check | node | values |",
        "|---|---|---|",
        *(f"| {name} | {each['of']} | {_values(each)} |" for name, found in healthy.items() for each in found),
    ]
    return "\n".join(lines) + "\n"


def _row(scene: Scene) -> str:
    key = {"cpu": "gflops", "allreduce": "busbw", "network": "gbps"}[scene.check.partition(" ")[0]]
    unit = {"gflops": "Gflop/s", "busbw": "GB/s", "gbps": "Gbit/s"}[key]
    told = [
        f"{'all' if len(str(each['of']).split()) > 2 else each['of']} {float(each[key]):.3g}"
        for each in scene.readings
        if key in each
    ]
    return f"| {scene.fault} | {scene.check} | {scene.found} | {'; '.join(told)} {unit} | {scene.seconds:.0f} |"


def _values(reading: Reading) -> str:
    return ", ".join(f"{key} {value}" for key, value in reading.items() if key not in ("of", "path", "which"))


if __name__ == "__main__":
    raise SystemExit(main())
