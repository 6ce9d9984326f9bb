"""Computes whether accounting works, as a reason and a message, from the observed state.

The parts of accounting start in order: the database, slurmdbd, and slurm.conf once slurmdbd has answered. From then on slurm.conf names slurmdbd even
while it is down, because slurmctld keeps its records and sends them when slurmdbd answers again. When accounting is turned off, slurm.conf loses
slurmdbd first.
"""

from dataclasses import dataclass, field

from soperator.policy.cluster.conditions import Role


@dataclass(frozen=True)
class AccountingSnapshot:
    """The observed state. `database` is None if it is external; `missing` is a message about what the spec names and does not exist.

    `said` is slurmdbd's last message about its database; `named` says whether slurmctld runs with a slurm.conf that names slurmdbd.
    """

    slurmdbd: Role = field(default_factory=Role)
    database: Role | None = None
    missing: str = ""
    said: str = ""
    named: bool = False


def judge(seen: AccountingSnapshot) -> tuple[str, str]:
    """Return the reason in CamelCase, and the message, empty if accounting works; of several causes it returns the first in start-up order."""
    reason, why = _cause(seen)
    if not why:
        return (
            ("Accounting", "")
            if seen.named
            else ("Starting", "slurmctld does not yet run with a slurm.conf that names slurmdbd")
        )
    return reason, f"{why}; slurmctld keeps its records until slurmdbd answers" if seen.named else why


def _cause(seen: AccountingSnapshot) -> tuple[str, str]:
    if seen.missing:
        return "NoDatabase", seen.missing
    if seen.database and seen.database.is_short:
        return "DatabaseNotReady", f"the database {seen.database} ready: {seen.database.trouble}"
    if seen.slurmdbd.is_short:
        why = f"slurmdbd {seen.slurmdbd} ready: {seen.slurmdbd.trouble}"
        return (
            (_fault(seen.said), f"{why}: {seen.said}{_remedy(seen.said)}") if seen.said else ("SlurmdbdNotReady", why)
        )
    return "", ""


#: What MariaDB's errors are about, by their numbers, and what to do. Source: MariaDB's and MySQL's error references. The first is the probe's own
#: sentence (images/slurm/accounting).
_FAULTS = {
    "does not know the cluster": (
        "UnknownCluster",
        "restore the former database; or, to start with this one, remove spec.accounting, and add it again when slurmdbd's pod is gone",
    ),
    " 1044 ": ("NoRights", "grant the user all rights on the database"),
    " 1045 ": ("WrongPassword", "correct the password in the Secret, or the user, who may need a client certificate"),
    " 1698 ": ("WrongPassword", "correct the password in the Secret, or the user"),
    " 1049 ": ("NoDatabase", "create the database, or grant the user the right to create it"),
    " 1142 ": ("NoRights", "grant the user all rights on the database"),
    " 1021 ": ("DatabaseFull", "enlarge the volume of the database"),
    " 1114 ": ("DatabaseFull", "enlarge the volume of the database"),
    " 2002 ": ("DatabaseDown", "check that the database runs, and that its host and port are correct"),
    " 2003 ": ("DatabaseDown", "check that the database runs, and that its host and port are correct"),
    " 2005 ": ("DatabaseDown", "correct the name of its host"),
    " 3159 ": ("NoTls", "the server requires TLS: set spec.accounting.externalDatabase.tls"),
    " 2026 ": ("NoTls", "correct the certificates in spec.accounting.externalDatabase.tls"),
}


def _fault(said: str) -> str:
    return next((reason for number, (reason, _) in _FAULTS.items() if number in said), "SlurmdbdNotReady")


def _remedy(said: str) -> str:
    return next((f"; {remedy}" for number, (_, remedy) in _FAULTS.items() if number in said), "")
