"""What kstatus makes of an object of ours, by its rules for kinds that it does not know; Flux, Argo CD and `helm --wait` follow them.

Source: the package `pkg/kstatus/status` of cli-utils.
"""

from collections.abc import Mapping
from typing import Any


def kstatus(obj: Mapping[str, Any]) -> str:
    """Terminating, InProgress, Failed or Current."""
    meta, status = obj["metadata"], obj.get("status", {})
    if meta.get("deletionTimestamp"):
        return "Terminating"
    if status.get("observedGeneration", meta["generation"]) != meta["generation"]:
        return "InProgress"
    known = {each["type"]: each["status"] for each in status.get("conditions", ())}
    if known.get("Reconciling") == "True":
        return "InProgress"
    if known.get("Stalled") == "True":
        return "Failed"
    return "Current" if known.get("Ready", "True") == "True" else "InProgress"
