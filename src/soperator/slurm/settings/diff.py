"""The effect of a change of Slurm's files: none, a reconfigure, or a restart of slurmctld.

Since 23.11 a reconfigure makes each daemon execute itself again, so that it reads every setting except those whose resources stay open across the
exec. Source: scontrol(1) and slurm.conf(5) of 24.11.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from soperator.slurm.conf import settings

#: "This will not be able to change the daemons' listening TCP port settings or authentication mechanism": scontrol(1).
FIXED = frozenset(
    {
        "slurmctldhost",
        "slurmctldport",
        "slurmdport",
        "authtype",
        "authalttypes",
        "authaltparameters",
        "authinfo",
        "credtype",
        "slurmuser",
        # slurmctld has to start with the cluster's id in the database (images/slurm/accounted).
        "accountingstoragetype",
        "accountingstoragehost",
        "accountingstorageport",
    }
)
#: Settings whose change is a danger for running jobs, with the statement of Slurm's manual.
DANGERS: Mapping[str, str] = MappingProxyType(
    {
        "switchtype": "the records of all jobs may be lost: change it only while no job is running or pending",
        "proctracktype": "running jobs use the former value: change it only while no job is running",
        "selecttypeparameters": "the former plugin placed the running jobs: slurmctld may requeue or end some",
    }
)


@dataclass(frozen=True)
class ConfigEffect:
    """The files and settings that change, whether slurmctld must restart, and the dangers, each as a sentence."""

    files: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    restarts: bool = False
    dangers: tuple[str, ...] = ()

    @property
    def act(self) -> str:
        """The effect of the change, as a message."""
        if not self.files:
            return "nothing"
        return (
            "slurmctld restarts, then every daemon reads the new files"
            if self.restarts
            else "every daemon reads the new files (reconfigure)"
        )


def effect(old: Mapping[str, str], new: Mapping[str, str]) -> ConfigEffect:
    """Return the effect of a change from one set of files to another."""
    files = tuple(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
    before, after = _settings(old.get("slurm.conf", "")), _settings(new.get("slurm.conf", ""))
    changed = tuple(key for key in sorted({*before, *after}) if before.get(key) != after.get(key))
    dangers = tuple(f"{_spelled(key, old, new)}: {DANGERS[key]}" for key in changed if key in DANGERS)
    names = tuple(_spelled(key, old, new) for key in changed)
    return ConfigEffect(files, names, not FIXED.isdisjoint(changed), dangers)


def fixed(files: Mapping[str, str]) -> str:
    """Return the settings of slurm.conf that only a restart changes, as one text that is compared with that of the running slurmctld."""
    found = _settings(files.get("slurm.conf", ""))
    return " ".join(f"{key}={','.join(found[key])}" for key in sorted(FIXED & found.keys()))


def diff(old: Mapping[str, str], new: Mapping[str, str], around: int = 3) -> Iterable[str]:
    """Return the unified diff of two sets of files, line by line."""
    for name in sorted({*old, *new}):
        before, after = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        yield from difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="", n=around)


def _settings(text: str) -> dict[str, list[str]]:
    """Return the values of each setting by its name in lower case, without the line that names the generation."""
    found: dict[str, list[str]] = {}
    for each in settings(text):
        value = ",".join(word for word in each.value.split(",") if not word.startswith("generation="))
        found.setdefault(each.key.lower(), []).append(value)
    return {key: values if key in _REPEATED else values[-1:] for key, values in found.items()}


#: Settings that may occur several times; of all others the last one counts.
_REPEATED = frozenset({"slurmctldhost", "partitionname", "nodeset", "nodename", "downnodes"})


def _spelled(key: str, *sets: Mapping[str, str]) -> str:
    """Return the name of a setting as the files spell it."""
    return next(
        (each.key for files in sets for each in settings(files.get("slurm.conf", "")) if each.key.lower() == key), key
    )
