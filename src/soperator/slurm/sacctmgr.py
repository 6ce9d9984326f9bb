"""The language of sacctmgr: the fields of associations and QOS, its output, and the arguments of its commands.

A field has the same name in commands and in the output. Values are compared by their meaning, because sacctmgr prints 90 minutes as 01:30:00, and ten
thousand megabytes in several ways. Source: every field was tried with sacctmgr 24.11.5 (docs/decisions/0066).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Sort = Literal["count", "time", "seconds", "tres", "set", "factor", "word"]
Fields = Mapping[str, str]

NOTHING: Fields = MappingProxyType({})

_LIMITS: dict[str, Sort] = {
    "GrpTRES": "tres", "GrpTRESMins": "tres", "GrpTRESRunMins": "tres", "GrpJobs": "count", "GrpJobsAccrue": "count",
    "GrpSubmitJobs": "count", "GrpWall": "time", "MaxTRES": "tres", "MaxTRESPerNode": "tres", "MaxTRESMins": "tres",
    "MaxWall": "time",
}  # fmt: skip
#: Fields of an association that an object may set, by sacctmgr's names.
ASSOCIATION: Mapping[str, Sort] = MappingProxyType(
    {
        "Fairshare": "word", **_LIMITS, "MaxJobs": "count", "MaxJobsAccrue": "count", "MaxSubmitJobs": "count",
        "Priority": "count", "QOS": "set", "DefaultQOS": "word",
    }
)  # fmt: skip
#: The same of a QOS.
QOS: Mapping[str, Sort] = MappingProxyType(
    {
        "Priority": "count", "Flags": "set", "GraceTime": "seconds", "Preempt": "set", "PreemptMode": "word",
        "UsageFactor": "factor", "UsageThreshold": "factor", "LimitFactor": "factor", **_LIMITS,
        "MaxTRESPerUser": "tres", "MaxJobsPerUser": "count", "MaxSubmitJobsPerUser": "count", "MaxTRESPerAccount": "tres",
        "MaxJobsPerAccount": "count", "MaxSubmitJobsPerAccount": "count", "MinTRES": "tres",
    }
)  # fmt: skip

#: The value that clears a field, where it is not -1.
_OFF: Mapping[str, str] = MappingProxyType(
    {"Fairshare": "1", "QOS": "", "Preempt": "", "PreemptMode": "cluster", "GraceTime": "0", "UsageFactor": "1"}
)
_UNITS = MappingProxyType({"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3})
#: What sacctmgr prints for an unchanged QOS.
_UNSET: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Fairshare": ("1",),
        "Priority": ("0",),
        "PreemptMode": ("cluster",),
        "GraceTime": ("00:00:00",),
        "UsageFactor": ("1.000000",),
    }
)
_TRES = r"[a-z]+(/[A-Za-z0-9_.:-]+)?"
_SHAPES: Mapping[Sort, tuple[str, str]] = MappingProxyType(
    {
        "count": ("[0-9]{1,10}", "a number"),
        "seconds": ("[0-9]{1,9}", "a number of seconds"),
        "factor": (r"[0-9]{1,6}(\.[0-9]{1,4})?", "a number such as 0.5"),
        "time": (
            r"[0-9]{1,7}|[0-9]{1,5}-[0-9]{1,2}(:[0-9]{2}){0,2}|[0-9]{1,4}:[0-9]{2}:[0-9]{2}",
            "minutes, or days-hours:minutes:seconds",
        ),
        "tres": (rf"{_TRES}=[0-9]{{1,15}}[KMGTP]?(,{_TRES}=[0-9]{{1,15}}[KMGTP]?)*", "TRES such as cpu=64,gres/gpu=8"),
        "set": (r"[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*", "names separated by commas"),
        "word": (r"[A-Za-z0-9_.-]+", "one word"),
    }
)
#: Between what two commands print.
BETWEEN = "\x1e"

_ASSOCIATIONS = ("Cluster", "Account", "User", "Partition", "ID", "ParentName", *ASSOCIATION, "Comment")
_QOS = ("Name", *QOS, "Description")
#: The queries, in the order in which `read` takes the answers; the first has a place for the cluster's name.
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("show", "assoc", "wopl", "cluster={cluster}", f"format={','.join(_ASSOCIATIONS)}"),
    ("show", "account", "format=Account,Organization,Description"),
    ("show", "qos", f"format={','.join(_QOS)}"),
    ("show", "user", "format=User,DefaultAccount"),
)

#: The query before a QOS is deleted: the associations of all clusters.
EVERYWHERE = ("show", "assoc", "wopl", "format=Cluster,Account,User,QOS,DefaultQOS")


def users_of(printed: str, qos: str) -> list[str]:
    """Return the associations of all clusters that may use a QOS, from sacctmgr's output for `EVERYWHERE`."""
    rows = _rows(printed, 5)
    found = ((cluster, account, user) for cluster, account, user, names, own in rows if qos in (*names.split(","), own))
    return [f"{user or 'all'} in {account} of cluster {cluster}" for cluster, account, user in found]


@dataclass(frozen=True)
class Association:
    """An account of the cluster (`user` is empty), or a user in it, for all partitions or for one."""

    account: str
    user: str
    partition: str
    number: str
    parent: str
    fields: Fields
    comment: str


@dataclass(frozen=True)
class AssociationTable:
    """The content of the accounting database for one cluster; `accounts` holds organization and description of each account, `defaults` the
    default account of each user.
    """

    associations: tuple[Association, ...] = ()
    accounts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    qos: Mapping[str, tuple[Fields, str]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    def account(self, name: str) -> Association | None:
        """Return the account's own association; None if the cluster does not have it."""
        return self.parents.get(name)

    @property
    def parents(self) -> Mapping[str, Association]:
        """Every account of the cluster."""
        return {each.account: each for each in self.associations if not each.user}


def read(printed: str) -> AssociationTable:
    """Return the records in sacctmgr's output for `QUESTIONS`, without lines that are not records; raises ValueError for any other text."""
    parts = printed.split(f"{BETWEEN}\n")
    if len(parts) != len(QUESTIONS):
        raise ValueError("sacctmgr did not answer every query")
    first, accounts, qos, users = parts
    return AssociationTable(
        tuple(_association(each) for each in _rows(first, len(_ASSOCIATIONS))),
        {name: (organization, text) for name, organization, text in _rows(accounts, 3)},
        {each[0]: (dict(zip(QOS, each[1:-1], strict=True)), each[-1]) for each in _rows(qos, len(_QOS))},
        {each[0]: each[1] for each in _rows(users, 2)},
    )


def _rows(printed: str, columns: int) -> list[list[str]]:
    rows = (line.split("|", columns - 1) for line in printed.splitlines())
    return [each for each in rows if len(each) == columns]


def _association(row: Sequence[str]) -> Association:
    _, account, user, partition, number, parent, *fields, comment = row
    return Association(account, user, partition, number, parent, dict(zip(ASSOCIATION, fields, strict=True)), comment)


def fault(sort: Sort, value: str) -> str:
    """Return the fault in the value of a field; empty if the value is valid."""
    pattern, said = _SHAPES[sort]
    return "" if re.fullmatch(pattern, value) else f"write {said}"


def differ(sort: Sort, one: str, other: str) -> bool:
    """Return whether two values differ in meaning; values that are not numbers are compared as text."""
    try:
        return _meaning(sort, one) != _meaning(sort, other)
    except ValueError:
        return one != other


def off(name: str, sort: Sort, now: str) -> str | None:
    """Return the value that clears a field; None if it is already clear."""
    if now in ("", *_UNSET.get(name, ())):
        return None
    if sort == "tres":
        return ",".join(f"{each}=-1" for each in _tres(now))
    return _OFF.get(name, "-1")


def written(sort: Sort, wanted: str, now: str) -> str:
    """Return the value that changes a field from `now` to the desired value; it clears an unwanted TRES by name."""
    if sort != "tres":
        return wanted
    gone = [f"{each}=-1" for each in _tres(now) if each not in _tres(wanted)]
    return ",".join(filter(None, [wanted, *gone]))


def _meaning(sort: Sort, value: str) -> object:
    match sort:
        case "tres":
            return {name: _amount(name, count) for name, count in _tres(value).items()}
        case "set":
            return frozenset(each.lower() for each in value.split(",") if each)
        case "time":
            return minutes(value) if value else None
        case "seconds":
            return _seconds(value) if value else None
        case "count" | "factor":
            return float(value) if value else None
        case "word":
            return value.lower()


def _tres(value: str) -> dict[str, str]:
    return {name.lower(): count for name, _, count in (each.partition("=") for each in value.split(",") if each)}


def _amount(name: str, count: str) -> float | str:
    unit = count[-1:].upper()
    try:
        if unit in _UNITS and name == "mem":
            return float(count[:-1]) * _UNITS[unit]
        return float(count[:-1]) * _UNITS[unit] * 1024**2 if unit in _UNITS else float(count)
    except ValueError:
        return count


def minutes(value: str) -> int:
    """Return a time of Slurm in minutes, rounded up as Slurm does. Formats: minutes, minutes:seconds, hours:minutes:seconds, or days- before any
    of these.
    """
    days, dash, rest = value.rpartition("-")
    parts = [int(each) for each in rest.split(":")]
    if dash:
        hours, mins, secs = (*parts, 0, 0, 0)[:3]
        return int(days) * 1440 + hours * 60 + mins + (secs > 0)
    if len(parts) == 3:
        return parts[0] * 60 + parts[1] + (parts[2] > 0)
    return parts[0] + (len(parts) == 2 and parts[1] > 0)


def _seconds(value: str) -> int:
    """Return a time in seconds as sacctmgr prints it: seconds, or days-hours:minutes:seconds."""
    days, _, rest = value.rpartition("-")
    total = 0
    for each in rest.split(":"):
        total = total * 60 + int(each)
    return int(days or 0) * 86400 + total


def words(fields: Fields) -> tuple[str, ...]:
    """Return the fields as `name=value` arguments of sacctmgr."""
    return tuple(f"{name}={value}" for name, value in fields.items())
