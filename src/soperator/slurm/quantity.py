"""Kubernetes quantities in Slurm's units: whole CPUs, and memory in MiB.

A Slurm node may allocate at most its pod's limits. Without these numbers slurmd reports the whole machine, and Slurm over-commits the pod without an
error. Source: Kubernetes' resource quantities, slurm.conf(5) RealMemory.
"""

from collections.abc import Mapping

_FACTORS = {
    "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


def quantity(text: str) -> float:
    """Return the number of a Kubernetes quantity; raises ValueError for an invalid one."""
    digits = text.rstrip("mkKMGTPEi")
    unit = text[len(digits) :]
    if unit not in _FACTORS:
        raise ValueError(
            f"{text!r} is not a Kubernetes quantity: write a number with a suffix, for example 500m or 16Gi"
        )
    return float(digits) * _FACTORS[unit]


def cpus(resources: Mapping[str, str]) -> int | None:
    """Return whole CPUs, at least one; None if the resources set none."""
    return max(1, int(quantity(resources["cpu"]))) if "cpu" in resources else None


def memory_mib(resources: Mapping[str, str]) -> int | None:
    """Return memory in whole MiB; None if the resources set none."""
    return int(quantity(resources["memory"]) // 2**20) if "memory" in resources else None
