"""Computes the sacctmgr commands that bring a QOS in Slurm's database to the state of a SlurmQOS.

It follows the rules of `accounts`, but the mark is at the beginning of the description, because a QOS has no comment.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from soperator.policy.associations.accounts import Jobs, SacctmgrPlan
from soperator.slurm import sacctmgr
from soperator.slurm.sacctmgr import NOTHING, QOS, AssociationTable, Fields


@dataclass(frozen=True)
class WantedQos:
    """The QOS that an object specifies; `text` is the description without the mark. `former` is an older mark without the cluster, which the
    operator replaces.
    """

    name: str
    mark: str
    text: str = ""
    fields: Fields = field(default_factory=dict)
    former: str = ""


def plan(wanted: WantedQos, database: AssociationTable, applied: frozenset[str]) -> SacctmgrPlan:
    """Return the commands to run; `applied` are the fields that the operator has set before."""
    lacking = sorted(
        {each for each in wanted.fields.get("Preempt", "").split(",") if each} - database.qos.keys() - {wanted.name}
    )
    waits = tuple(f"QOS {each} of preempt does not exist yet: create a SlurmQOS for it" for each in lacking)
    fields = {name: value for name, value in wanted.fields.items() if not (lacking and name == "Preempt")}
    if wanted.name not in database.qos:
        text = f"Description={_marked(wanted)}"
        return SacctmgrPlan((("add", "qos", f"name={wanted.name}", text, *sacctmgr.words(fields)),), waits)
    now, description = database.qos[wanted.name]
    changed = {
        name: sacctmgr.written(QOS[name], value, now[name])
        for name, value in fields.items()
        if sacctmgr.differ(QOS[name], value, now[name])
    }
    changed |= _off(applied - wanted.fields.keys(), now)
    has_former = bool(wanted.former) and description.partition(" ")[0] == wanted.former
    text = _marked(wanted) if is_ours(wanted, description) or has_former else wanted.text or description
    if text.lower() != description.lower():
        changed["Description"] = text
    if not changed:
        return SacctmgrPlan(waits=waits)
    return SacctmgrPlan((("modify", "qos", "where", f"name={wanted.name}", "set", *sacctmgr.words(changed)),), waits)


def undo(wanted: WantedQos, database: AssociationTable, jobs: Jobs | None) -> SacctmgrPlan:
    """Return the commands that remove everything that the object created."""
    _, description = database.qos.get(wanted.name, (NOTHING, ""))
    if not is_ours(wanted, description):
        return SacctmgrPlan()
    users = sorted(
        {
            f"{each.user} in {each.account}" if each.user else each.account
            for each in database.associations
            if wanted.name in (*each.fields["QOS"].split(","), each.fields["DefaultQOS"])
        }
    )
    if users:
        return SacctmgrPlan(waits=(f"accounts use it: {', '.join(users[:5])}{' and more' if users[5:] else ''}",))
    if jobs is None:
        return SacctmgrPlan(asks=True)
    if numbers := sorted(each for found in jobs.values() for each in found):
        return SacctmgrPlan(waits=(f"its jobs are pending or running: {', '.join(map(str, numbers[:5]))}",))
    return SacctmgrPlan((("delete", "qos", "where", f"name={wanted.name}"),))


def is_ours(wanted: WantedQos, description: str) -> bool:
    """Return whether the object created the QOS with this description."""
    return description.partition(" ")[0] == wanted.mark


def _marked(wanted: WantedQos) -> str:
    return f"{wanted.mark} {wanted.text}".strip()


def _off(names: Iterable[str], now: Fields) -> dict[str, str]:
    values = {name: sacctmgr.off(name, QOS[name], now[name]) for name in sorted(names) if name in QOS}
    return {name: value for name, value in values.items() if value is not None}
