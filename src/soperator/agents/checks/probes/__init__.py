"""The probes: functions that measure the node, by the name that a check's file gives.

A probe returns readings, and raises ProbeError if it has none that can be judged. It may hang or crash, because it runs in a separate process.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from soperator.agents.checks.probes.place import Probe

#: Name → module; only that of a probe which runs is imported, and that in the probe's own process.
PROBES: Mapping[str, str] = MappingProxyType(
    {
        "filesystem": "storage",
        "latency": "storage",
        "memory": "memory",
        "oom": "memory",
        "processes": "processes",
        "leftovers": "processes",
        "holders": "processes",
        "kernel": "kernel",
        "clock": "clock",
        "infiniband": "infiniband",
        "nvidia": "nvidia",
        "nvlink": "nvidia",
        "amd": "amd",
    }
)


def probe(name: str) -> Probe:
    """Return the probe of a name; raises LookupError if there is none."""
    found: Probe = getattr(import_module(f"{__name__}.{PROBES[name]}"), name)
    return found
