"""Measures NVIDIA GPUs, from the output of `nvidia-smi -q -x` and `nvidia-smi nvlink --status`.

The XML names every value, has N/A for a value that a device lacks, and omits values that an older driver does not know, so nothing depends on the
driver's version. If a GPU has fallen off the bus, the program prints a message instead, omits the GPU, or prints an error in place of values: all
three become readings. Source: nvidia-smi(1), nvidia-smi's own nvsmi_device DTD.
"""

import os
import pyexpat
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading, Value

#: The program's messages when a GPU, or the driver, is lost. Recorded from drivers 460 to 580.
_LOST = re.compile(
    r"Unable to determine the device handle for (?:GPU|gpu)\s*(?P<gpu>[^\s]*?):? .*|.*GPU is lost.*|No devices were found.*"
    r"|.*couldn't communicate with the NVIDIA driver.*|Failed to initialize NVML.*"
)
_ERRORS = ("GPU is lost", "Unknown Error", "ERR!", "GPU requires reset")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?(?= |x|$)")

#: Values of a GPU: name → the elements below <gpu>; the first existing one counts, because drivers have renamed them.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "width_most": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "replays": ("pci/replay_counter",),
    "temperature": ("temperature/gpu_temp",),
    "margin": ("temperature/gpu_temp_tlimit",),
    "slowdown_at": ("temperature/gpu_temp_slow_threshold",),
    "clock": ("clocks/sm_clock",),
    "clock_most": ("max_clocks/sm_clock",),
    "busy": ("utilization/gpu_util",),
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "model": ("product_name",),
    "ecc": ("ecc_mode/current_ecc",),
    "remap_pending": ("remapped_rows/remapped_row_pending", "retired_pages/pending_retirement"),
    "remap_failure": ("remapped_rows/remapped_row_failure",),
    "recovery": ("gpu_recovery_action",),
    "fabric": ("fabric/status",),
    "fabric_state": ("fabric/state",),
    "hot": ("clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown",
            "clocks_throttle_reasons/clocks_throttle_reason_hw_thermal_slowdown"),
    "brake": ("clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown",
              "clocks_throttle_reasons/clocks_throttle_reason_hw_power_brake_slowdown"),
}  # fmt: skip


def nvidia(given: Given, place: ProbePaths) -> list[Reading]:
    """First the node: `gpus` that answer, `wanted`, `missing`, `devices` in /dev, `ordered`. Then one reading per GPU; a lost GPU has only `lost`.

    GPUs without any output, not even that they are lost, are missing; if no GPU answers, all are.
    """
    out, err = _output(place, "-q", "-x")
    readings = parse(out, err)
    gpus = [each for each in readings if "lost" not in each]
    node: dict[str, Value] = {"of": "the node", "gpus": len(gpus)}
    if wanted := int(given.get("count") or 0):
        node |= {"wanted": wanted, "missing": wanted - (len(readings) if gpus else 0)}
    minors = [int(each["minor"]) for each in gpus if "minor" in each]
    node |= {"devices": len(list(place.dev.glob("nvidia[0-9]*"))), "ordered": minors == sorted(minors)}
    return [node, *readings]


def nvlink(_: Given, place: ProbePaths) -> list[Reading]:
    """One reading for each GPU with NVLink: its `links`, and the number of them that are `up`."""
    out, err = _output(place, "nvlink", "--status")
    return parse_links(out) or _lost(out, err) or [{"of": "the node", "links": 0, "up": 0}]


def parse(out: str, err: str = "") -> list[Reading]:
    """Return the readings of the XML; raises ProbeError if there is neither XML nor a message about a lost GPU."""
    lost = _lost(out, err)
    start = out.find("<?xml")
    if start < 0:
        if lost:
            return lost
        raise ProbeError(f"nvidia-smi said no XML: {(err or out).strip()[:200] or 'nothing at all'}")
    try:
        return [*map(_gpu, _elements(out[start:])), *lost]
    except pyexpat.ExpatError as error:
        raise ProbeError(f"nvidia-smi's XML is incomplete or invalid: {error}") from error


def parse_links(out: str) -> list[Reading]:
    """Return the readings of `nvidia-smi nvlink --status`; only a link with a bandwidth counts as up."""
    found: list[dict[str, Value]] = []
    for line in out.splitlines():
        if match := re.match(r"GPU (\d+): (.*?)(?: \(UUID.*)?$", line.strip()):
            found.append({"of": f"GPU {match[1]}", "model": match[2], "links": 0, "up": 0})
        elif found and (match := re.match(r"Link \d+: (.*)", line.strip())):
            found[-1]["links"] = int(found[-1]["links"]) + 1
            found[-1]["up"] = int(found[-1]["up"]) + bool(re.match(r"[\d.]+ [GM]B/s", match[1]))
    return [each for each in found if each["links"]]


def _lost(out: str, err: str) -> list[Reading]:
    before = out[: out.find("<?xml")] if "<?xml" in out else out
    lines = [line.strip() for line in f"{before}\n{err}".splitlines()]
    return [
        {"of": f"GPU {match['gpu']}" if match["gpu"] else "a GPU", "lost": True, "said": line[:160]}
        for line in lines
        if (match := _LOST.match(line))
    ]


def _elements(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Return the texts of each GPU's XML by path, under the GPU's PCI address."""
    stack: list[str] = []
    found: list[tuple[str, dict[str, str]]] = []
    words: list[str] = []

    def opened(name: str, attributes: dict[str, str]) -> None:
        words.clear()
        stack.append(name)
        if stack[1:] == ["gpu"]:
            found.append((attributes.get("id", "?"), {}))

    def closed(_: str) -> None:
        said = "".join(words).strip()
        if found and len(stack) > 2 and said:
            found[-1][1].setdefault("/".join(stack[2:]), said)
        words.clear()
        stack.pop()

    parser = pyexpat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = opened, closed, words.append
    parser.Parse(text.encode(), True)
    return iter(found)


def _gpu(element: tuple[str, Mapping[str, str]]) -> Reading:
    bus, said = element
    reading: dict[str, Value] = {"of": f"GPU {bus}"}
    if broken := next((text for text in said.values() if text.strip("[]") in _ERRORS), ""):
        return reading | {"lost": True, "said": broken.strip("[]")}
    for key, paths in _NUMBERS.items():
        if match := _NUMBER.match(_first(said, paths)):
            reading[key] = float(match[0])
    for key, paths in _WORDS.items():
        if (text := _first(said, paths)) and text.strip("[]") != "N/A":
            reading[key] = text
    if said.get("minor_number", "").isdecimal():
        reading["minor"] = int(said["minor_number"])
    errors = [text for path, text in said.items() if _is_uncorrected(path) and text.isdecimal()]
    if errors:
        reading["uncorrected"] = sum(map(int, errors))
    if reading.get("clock_most") and "clock" in reading:
        reading["clock_share"] = round(100 * float(reading["clock"]) / float(reading["clock_most"]))
    return reading


def _is_uncorrected(path: str) -> bool:
    """Return whether a path is a count of uncorrectable errors since the driver was loaded."""
    return (
        path.startswith("ecc_errors/volatile/") and "uncorrectable" in path
    ) or path == "ecc_errors/volatile/double_bit/total"


def _first(said: Mapping[str, str], paths: tuple[str, ...]) -> str:
    return next((said[path] for path in paths if path in said), "")


def _output(place: ProbePaths, *words: str) -> tuple[str, str]:
    """Return the program's output on both channels, whatever its exit code, because the program may fail if a GPU is lost."""
    done = run(place, "nvidia-smi", *words)
    return done.stdout, done.stderr


def run(place: ProbePaths, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the GPU driver with the driver's libraries; raises ProbeError if the program is missing."""
    program = next((folder / name for folder in place.tools if os.access(folder / name, os.X_OK)), None)
    if program is None:
        raise ProbeError(f"{name} is in none of {', '.join(map(str, place.tools))}")
    libraries = f"{program.parent.parent / 'lib'}"
    environment = {
        **os.environ,
        **({"LD_LIBRARY_PATH": libraries} if Path(libraries).is_dir() and libraries != "/usr/lib" else {}),
    }
    return subprocess.run(
        [program, *words], capture_output=True, text=True, errors="replace", check=False, env=environment
    )
