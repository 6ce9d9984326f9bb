"""Measures AMD GPUs, from the output of `rocm-smi --json`."""

import json
import re
from typing import Any

from soperator.agents.checks.probes.nvidia import run
from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading, Value

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
#: Names have changed between versions of ROCm; the first that is there counts.
_NUMBERS = {
    "temperature": ("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"),
    "busy": ("GPU use (%)",),
    "replays": ("PCIe Replay Count",),
}
_MODEL = ("Card Series", "Card series", "Card Model", "Card model")


def amd(given: Given, place: ProbePaths) -> list[Reading]:
    """First the node: `gpus` that answer, `wanted` and `missing`; then one reading per GPU."""
    done = run(place, "rocm-smi", "--showproductname", "--showtemp", "--showuse", "--showreplaycount", "--json")
    gpus = parse(done.stdout, done.stderr)
    wanted = int(given.get("count") or 0)
    node: dict[str, Value] = {"of": "the node", "gpus": len(gpus)}
    return [node | ({"wanted": wanted, "missing": wanted - len(gpus)} if wanted else {}), *gpus]


def parse(out: str, err: str = "") -> list[Reading]:
    """Return the readings in the JSON, before which some versions print warnings; raises ProbeError if there is no JSON."""
    start = out.find("{")
    try:
        said = json.loads(out[start:]) if start >= 0 else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ProbeError(f"rocm-smi said no JSON: {(err or out).strip()[:200] or 'nothing at all'}")
    return [_gpu(name, each) for name, each in said.items() if name.startswith("card") and isinstance(each, dict)]


def _gpu(name: str, said: dict[str, Any]) -> Reading:
    reading: dict[str, Value] = {"of": f"GPU {name.removeprefix('card')}"}
    for key, names in _NUMBERS.items():
        text = next((str(said[each]) for each in names if each in said), "")
        if match := _NUMBER.match(text):
            reading[key] = float(match[0])
    if model := next((str(said[each]) for each in _MODEL if each in said), ""):
        reading["model"] = model
    return reading
