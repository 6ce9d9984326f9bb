"""Computes the sacctmgr commands that bring an account in Slurm's database to the state of a SlurmAccount, from the spec, the database and the
jobs.

Everything that the object creates carries its mark: the comment of the association, written in the same transaction. So the operator recognizes it
after any crash and without the status, and deletes nothing else. In an account that existed before, it sets only the fields that the object names. It
clears a field that is removed from the object if the status says that the operator had set it.

Each plan is computed from the content of the database, so after a partial run the next plan is the remainder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from soperator.slurm import sacctmgr
from soperator.slurm.sacctmgr import ASSOCIATION, Association, AssociationTable, Fields

#: The most users in one command.
AT_ONCE = 50
_NAMED = 5

T = TypeVar("T")
Words = tuple[str, ...]
#: The fields that were set, by user; those of the account itself are under the empty name.
Applied = Mapping[str, frozenset[str]]
#: Numbers of the jobs of an account, by user.
Jobs = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Member:
    """A desired user of the account."""

    fields: Fields = field(default_factory=dict)
    default: bool = False


@dataclass(frozen=True)
class Account:
    """The account that an object specifies. `mark` is written on everything that the object creates; `texts` are Description and Organization."""

    cluster: str
    name: str
    mark: str
    parent: str = ""
    texts: Fields = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)
    users: Mapping[str, Member] = field(default_factory=dict)

    @property
    def applied(self) -> Applied:
        """The fields that the object sets, by sacctmgr's names."""
        mine = {"": frozenset(self.fields)} | {user: frozenset(each.fields) for user, each in self.users.items()}
        return {user: fields for user, fields in mine.items() if fields}


@dataclass(frozen=True)
class SacctmgrPlan:
    """The commands in order, messages about what cannot be done yet, and whether the next step needs the list of jobs."""

    commands: tuple[Words, ...] = ()
    waits: tuple[str, ...] = ()
    asks: bool = False


def mark(namespace: str, name: str) -> str:
    """Return the mark that an object writes on what it creates; the mark is the same after the object was deleted and created again."""
    return f"soperator:{namespace}/{name}"


def shared_mark(cluster: str, namespace: str, name: str) -> str:
    """Return the mark on entries that all clusters of a database share, because another Kubernetes cluster may have an object of the same name."""
    return f"soperator:{cluster}/{namespace}/{name}"


def plan(
    wanted: Account, database: AssociationTable, above: Mapping[str, str], applied: Applied, jobs: Jobs | None
) -> SacctmgrPlan:
    """Return the commands to run. `above` has the desired parents of the accounts of all objects; `jobs` is None while the jobs are not known."""
    there = database.account(wanted.name)
    parent, waits = _parent(wanted, database, above)
    fields, lacking = _usable(wanted.fields, database)
    waits += lacking
    if there is None and parent is None:
        return SacctmgrPlan(waits=tuple(waits))
    own = (
        [_add_account(wanted, parent or "root", fields)]
        if there is None
        else [*_change_account(wanted, there, parent, fields, applied)]
    )
    if there is not None:
        own += _texts(wanted, database)
    added, more = _users(wanted, database, applied)
    leaving = leave(
        wanted, database, [each for each in _members(database, wanted.name) if each.user not in wanted.users], jobs
    )
    kept = _taken_back(wanted, database, applied)
    return SacctmgrPlan((*own, *added, *kept, *leaving.commands), (*waits, *more, *leaving.waits), leaving.asks)


def undo(wanted: Account, database: AssociationTable, jobs: Jobs | None) -> SacctmgrPlan:
    """Return the commands that remove everything that the object created. The removal is complete when there is neither a command nor a message."""
    there = database.account(wanted.name)
    if there is None:
        return SacctmgrPlan()
    members = _members(database, wanted.name, partitions=True)
    leaving = leave(wanted, database, [each for each in members if not each.partition], jobs)
    if there.comment != wanted.mark:
        return leaving
    foreign = [each.user for each in members if each.comment != wanted.mark or each.partition]
    below = [each.account for each in database.parents.values() if each.parent == wanted.name]
    waits = list(leaving.waits)
    if foreign:
        waits.append(f"other administrators added users to it: {_some(foreign)}")
    if below:
        waits.append(f"accounts are below it: {_some(below)}")
    if jobs is None:
        return SacctmgrPlan(leaving.commands, tuple(waits), True)
    if numbers := sorted(each for found in jobs.values() for each in found):
        waits.append(f"its jobs are pending or running: {_some(map(str, numbers))}")
    gone = [] if waits else [("delete", "account", "where", f"name={wanted.name}", f"cluster={wanted.cluster}")]
    return SacctmgrPlan((*leaving.commands, *gone), tuple(dict.fromkeys(waits)))


def leave(
    wanted: Account, database: AssociationTable, members: Iterable[Association], jobs: Jobs | None
) -> SacctmgrPlan:
    """Return the removal of those users whom the object added to the account, unless they have jobs or would lose their default account."""
    ours = sorted((each for each in members if each.comment == wanted.mark), key=lambda each: each.user)
    if not ours:
        return SacctmgrPlan()
    if jobs is None:
        return SacctmgrPlan(asks=True)
    waits, gone = [], []
    for each in ours:
        if found := jobs.get(each.user):
            waits.append(f"{each.user} has jobs in it: {_some(map(str, sorted(found)))}")
        elif database.defaults.get(each.user) == wanted.name and _others(database, each):
            waits.append(
                f"it is the default account of {each.user}, who is also in {_some(_others(database, each))}: set default: "
                f"true there, or run sacctmgr modify user {each.user} set DefaultAccount="
            )
        else:
            gone.append(each)
    place = (f"account={wanted.name}", f"cluster={wanted.cluster}")
    commands = [
        ("delete", "user", "where", f"name={_list(part)}", *place, f"assoc={_numbers(part)}") for part in _parts(gone)
    ]
    return SacctmgrPlan(tuple(commands), tuple(waits))


def _parent(wanted: Account, database: AssociationTable, above: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """Return the parent that the account can have now (empty if any parent is valid, None if no parent exists yet), and the cause."""
    if not wanted.parent:
        return "", []
    chain, known = [wanted.name, wanted.parent], database.parents
    while (last := chain[-1]) != "root" and last not in chain[:-1]:
        following = above.get(last) or (known[last].parent if last in known else "")
        if not following:
            break
        chain.append(following)
    if chain[-1] in chain[:-1]:
        return None, [f"it would be below itself: {' is below '.join(chain)}: choose another parent"]
    if wanted.parent != "root" and wanted.parent not in known:
        return None, [
            f"its parent {wanted.parent} is not an account of the cluster yet: create a SlurmAccount for it, or choose another parent"
        ]
    return wanted.parent, []


def _usable(fields: Fields, database: AssociationTable) -> tuple[Fields, list[str]]:
    """Return the fields without QOS that do not exist yet, and messages about those QOS."""
    lacking = sorted(
        {each for name in ("QOS", "DefaultQOS") for each in fields.get(name, "").split(",")}
        - {""}
        - database.qos.keys()
    )
    if not lacking:
        return fields, []
    rest = {name: value for name, value in fields.items() if name not in ("QOS", "DefaultQOS")}
    return rest, [f"QOS {each} does not exist yet: create a SlurmQOS for it, or remove it" for each in lacking]


def _add_account(wanted: Account, parent: str, fields: Fields) -> Words:
    place = (f"name={wanted.name}", f"cluster={wanted.cluster}", f"parent={parent}", f"comment={wanted.mark}")
    return ("add", "account", *place, *sacctmgr.words(wanted.texts), *sacctmgr.words(fields))


def _change_account(
    wanted: Account, there: Association, parent: str | None, fields: Fields, applied: Applied
) -> Iterator[Words]:
    changed = _changed(fields, there.fields) | _off(applied.get("", frozenset()) - wanted.fields.keys(), there.fields)
    if parent and parent != there.parent:
        changed = {"Parent": parent, **changed}
    if changed:
        where = ("where", f"name={wanted.name}", f"cluster={wanted.cluster}")
        yield ("modify", "account", *where, "set", *sacctmgr.words(changed))


def _texts(wanted: Account, database: AssociationTable) -> Iterator[Words]:
    """Yield the commands for description and organization, which Slurm stores in lower case, and once for all clusters of the database."""
    organization, description = database.accounts.get(wanted.name, ("", ""))
    now = {"Organization": organization, "Description": description}
    changed = {name: text for name, text in wanted.texts.items() if text.lower() != now[name].lower()}
    if changed:
        yield ("modify", "account", "where", f"name={wanted.name}", "set", *sacctmgr.words(changed))


def _users(wanted: Account, database: AssociationTable, applied: Applied) -> tuple[list[Words], list[str]]:
    """Return the commands for users to add and users whose fields change; users with the same change share one command."""
    there = {each.user: each for each in _members(database, wanted.name)}
    missing: dict[Words, list[str]] = {}
    changes: dict[Words, list[Association]] = {}
    waits: list[str] = []
    place = (f"account={wanted.name}", f"cluster={wanted.cluster}")
    defaults: list[Words] = []
    for user, member in wanted.users.items():
        fields, lacking = _usable(member.fields, database)
        waits += lacking
        if user not in there:
            missing.setdefault(sacctmgr.words(fields), []).append(user)
            continue
        now = there[user].fields
        changed = _changed(fields, now) | _off(applied.get(user, frozenset()) - member.fields.keys(), now)
        if changed:
            changes.setdefault(sacctmgr.words(changed), []).append(there[user])
        if member.default and database.defaults.get(user) != wanted.name:
            where = ("where", f"name={user}", f"cluster={wanted.cluster}")
            defaults.append(("modify", "user", *where, "set", f"DefaultAccount={wanted.name}"))
    added = [
        ("add", "user", f"name={','.join(part)}", *place, f"comment={wanted.mark}", *fields)
        for fields, users in missing.items()
        for part in _parts(users)
    ]
    return [*added, *_modify(place, changes), *defaults], list(dict.fromkeys(waits))


def _taken_back(wanted: Account, database: AssociationTable, applied: Applied) -> list[Words]:
    """Return the fields to clear of users whom another administrator added and who are no longer in the list."""
    changes: dict[Words, list[Association]] = {}
    for each in _members(database, wanted.name):
        if each.user not in wanted.users and each.comment != wanted.mark:
            changed = _off(applied.get(each.user, frozenset()), each.fields)
            if changed:
                changes.setdefault(sacctmgr.words(changed), []).append(each)
    return _modify((f"account={wanted.name}", f"cluster={wanted.cluster}"), changes)


def _modify(place: Words, changes: Mapping[Words, Sequence[Association]]) -> list[Words]:
    return [
        ("modify", "user", "where", f"name={_list(part)}", *place, f"assoc={_numbers(part)}", "set", *fields)
        for fields, found in changes.items()
        for part in _parts(found)
    ]


def _members(database: AssociationTable, account: str, partitions: bool = False) -> list[Association]:
    """Return the users of an account, without associations for one partition, which an object never creates."""
    found = [each for each in database.associations if each.account == account and each.user]
    return [each for each in found if partitions or not each.partition]


def _others(database: AssociationTable, one: Association) -> list[str]:
    return sorted({each.account for each in database.associations if each.user == one.user} - {one.account})


def _changed(fields: Fields, now: Fields) -> dict[str, str]:
    return {
        name: sacctmgr.written(ASSOCIATION[name], value, now[name])
        for name, value in fields.items()
        if sacctmgr.differ(ASSOCIATION[name], value, now[name])
    }


def _off(names: Iterable[str], now: Fields) -> dict[str, str]:
    values = {name: sacctmgr.off(name, ASSOCIATION[name], now[name]) for name in sorted(names) if name in ASSOCIATION}
    return {name: value for name, value in values.items() if value is not None}


def _parts(found: Sequence[T]) -> list[Sequence[T]]:
    return [found[start : start + AT_ONCE] for start in range(0, len(found), AT_ONCE)]


def _list(found: Iterable[Association]) -> str:
    return ",".join(each.user for each in found)


def _numbers(found: Iterable[Association]) -> str:
    return ",".join(each.number for each in found)


def _some(found: Iterable[str]) -> str:
    every = list(dict.fromkeys(found))
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more
