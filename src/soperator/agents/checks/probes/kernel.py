"""Reads the kernel's messages about errors of GPUs (XID), memory and disks. By default a pod may not read them, and then there is no reading."""

import os
import re
import time

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading

#: NVRM: Xid (PCI:0000:3b:00): 79, … Source: docs.nvidia.com/deploy/xid-errors.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+),?\s*(.*)")
_OFF_THE_BUS = re.compile(r"NVRM:.*fallen off the bus")
_ERRORS = re.compile(
    r"(Hardware Error|Machine check|I/O error, dev \w+|EXT4-fs error|XFS .*(?:corruption|shutdown)"
    r"|nvme\S*: .*(?:timeout|Removing after probe failure)|uncorrected .*AER|mlx5_core .*(?:health compromised|device's health))",
    re.IGNORECASE,
)


def kernel(given: Given, place: ProbePaths) -> list[Reading]:
    """Messages of the last `given.seconds`: `xid` of a device, or `error`.

    Without such messages the only reading shows that the kernel's log is readable.
    """
    return parse(_messages(place, float(given["seconds"])))


def parse(lines: list[str]) -> list[Reading]:
    """Return the readings of the given messages."""
    found: list[Reading] = [{"of": "the kernel", "lines": len(lines)}]
    for line in lines:
        if match := _XID.search(line):
            found.append({"of": f"GPU {match[1]}", "xid": int(match[2]), "said": match[3][:120]})
        elif _OFF_THE_BUS.search(line):
            found.append({"of": "a GPU", "xid": 79, "said": line.strip()[:120]})
        elif match := _ERRORS.search(line):
            found.append({"of": "the kernel", "error": line.strip()[:160]})
    return found


def _messages(place: ProbePaths, seconds: float) -> list[str]:
    """Return the texts of /dev/kmsg that are recent enough.

    A line has the format level,number,microseconds,flags;text (Documentation/ABI/testing/dev-kmsg).
    """
    try:
        fd = os.open(place.dev / "kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ProbeError(f"{place.dev / 'kmsg'}: {error.strerror}") from error
    since, lines = time.clock_gettime(time.CLOCK_MONOTONIC) - seconds, []
    try:
        while record := _record(fd):
            head, _, text = record.partition(";")
            if float(head.split(",")[2]) / 1e6 >= since:
                lines.append(text.splitlines()[0] if text else "")
    finally:
        os.close(fd)
    return lines


def _record(fd: int) -> str:
    while True:
        try:
            return os.read(fd, 8192).decode(errors="replace")
        except BlockingIOError:
            return ""
        except BrokenPipeError:  # it was overwritten while we read: the next one is there
            continue
