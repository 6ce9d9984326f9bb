"""Measures InfiniBand and RoCE ports, from the kernel's files in /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband)."""

from pathlib import Path

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading, Value


def infiniband(_: Given, place: ProbePaths) -> list[Reading]:
    """First the number of `ports`; then one reading per port: `state` (ACTIVE), `physical` (LinkUp), `rate` in Gb/s, and counters of errors."""
    root = place.sys / "class/infiniband"
    if not root.is_dir():
        raise ProbeError(f"{root} is missing: this pod has no InfiniBand driver")
    found = [_port(path) for path in sorted(root.glob("*/ports/*"))]
    return [{"of": "the node", "ports": len(found)}, *found]


def _port(path: Path) -> Reading:
    reading: dict[str, Value] = {"of": f"{path.parent.parent.name} port {path.name}"}
    for name, key in (("state", "state"), ("phys_state", "physical"), ("link_layer", "layer")):
        if text := _text(path / name):
            reading[key] = text.partition(": ")[2] or text
    rate = _text(path / "rate").split()
    if rate:
        reading["rate"] = float(rate[0])
    for name in ("symbol_error", "link_downed", "link_error_recovery"):
        if (text := _text(path / "counters" / name)).isdecimal():
            reading[name] = int(text)
    return reading


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
