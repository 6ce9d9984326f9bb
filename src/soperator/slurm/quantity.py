"""Kubernetes quantities as Slurm counts: whole CPUs, and memory in MiB.

A pod's limit is what its Slurm node may give out. slurmd by itself would report the whole machine, and Slurm would then over-commit
the pod without anyone noticing. Source: Kubernetes' resource quantities, slurm.conf(5) RealMemory.
"""

from collections.abc import Mapping

_FACTORS = {
    "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


def quantity(text: str) -> float:
    """The number that a Kubernetes quantity means; raises ValueError where it means none."""
    digits = text.rstrip("mkKMGTPEi")
    unit = text[len(digits) :]
    if unit not in _FACTORS:
        raise ValueError(f"{text!r} is not a Kubernetes quantity")
    return float(digits) * _FACTORS[unit]


def cpus(resources: Mapping[str, str]) -> int | None:
    """Whole CPUs, at least one; None where nothing is said."""
    return max(1, int(quantity(resources["cpu"]))) if "cpu" in resources else None


def memory_mib(resources: Mapping[str, str]) -> int | None:
    """Memory in whole MiB; None where nothing is said."""
    return int(quantity(resources["memory"]) // 2**20) if "memory" in resources else None
