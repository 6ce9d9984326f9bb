"""Whether accounting works, as a reason and a message: a function of the observed state.

Its parts start in this order: the database, slurmdbd, and slurm.conf once slurmdbd has answered. From then on slurm.conf names slurmdbd even while it
is down: slurmctld keeps its records, and sends them when slurmdbd answers again. When accounting is turned off, slurmdbd leaves slurm.conf first.
"""

from dataclasses import dataclass, field

from soperator.policy.cluster.conditions import Role


@dataclass(frozen=True)
class AccountingSnapshot:
    """The observed state. `database` is None where it is external; `missing` says what of the spec cannot be carried out.

    `said` is slurmdbd's last message about its database; `named` is whether slurmctld runs with a slurm.conf that names slurmdbd.
    """

    slurmdbd: Role = field(default_factory=Role)
    database: Role | None = None
    missing: str = ""
    said: str = ""
    named: bool = False


def judge(seen: AccountingSnapshot) -> tuple[str, str]:
    """Return the reason in CamelCase, and the message, which is empty when accounting works; of several causes the first in start-up order is
    reported.
    """
    reason, why = _cause(seen)
    if not why:
        return (
            ("Accounting", "")
            if seen.named
            else ("Starting", "slurmctld is to run with a slurm.conf that names slurmdbd")
        )
    return reason, f"{why}; slurmctld keeps what it has to tell until slurmdbd answers" if seen.named else why


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
        "give the former database back; or, to begin with this one, remove spec.accounting, and put it back when slurmdbd's pod is gone",
    ),
    " 1044 ": ("NoRights", "give the user all rights on the database"),
    " 1045 ": ("WrongPassword", "correct the password in the Secret, or the user, who may have to show a certificate"),
    " 1698 ": ("WrongPassword", "correct the password in the Secret, or the user"),
    " 1049 ": ("NoDatabase", "make the database, or let the user make it"),
    " 1142 ": ("NoRights", "give the user all rights on the database"),
    " 1021 ": ("DatabaseFull", "enlarge the volume of the database"),
    " 1114 ": ("DatabaseFull", "enlarge the volume of the database"),
    " 2002 ": ("DatabaseDown", "see whether the database runs, and whether its host and port are right"),
    " 2003 ": ("DatabaseDown", "see whether the database runs, and whether its host and port are right"),
    " 2005 ": ("DatabaseDown", "correct the name of its host"),
    " 3159 ": ("NoTls", "the server demands TLS: say it in spec.accounting.externalDatabase.tls"),
    " 2026 ": ("NoTls", "correct the certificates in spec.accounting.externalDatabase.tls"),
}


def _fault(said: str) -> str:
    return next((reason for number, (reason, _) in _FAULTS.items() if number in said), "SlurmdbdNotReady")


def _remedy(said: str) -> str:
    return next((f"; {remedy}" for number, (_, remedy) in _FAULTS.items() if number in said), "")
