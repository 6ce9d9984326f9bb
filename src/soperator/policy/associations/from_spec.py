"""Converts the specs of SlurmAccounts and SlurmQOS to fields of sacctmgr, so that the policy knows one vocabulary."""

from collections.abc import Iterator, Mapping

from soperator.api.associations import AccountUser, SlurmAccountSpec, SlurmQOSSpec
from soperator.api.base import Model, Problem
from soperator.policy.associations.accounts import Account, Member
from soperator.policy.associations.qos import WantedQos
from soperator.slurm.sacctmgr import ASSOCIATION, QOS, Sort, fault

#: sacctmgr's names of the fields that are written otherwise than theirs.
_UNLIKE = {"grp_tres": "GrpTRES", "max_tres": "MaxTRES", "max_tres_per_node": "MaxTRESPerNode", "min_tres": "MinTRES"}
_UNLIKE |= {
    "max_tres_per_user": "MaxTRESPerUser",
    "max_tres_per_account": "MaxTRESPerAccount",
    "default_qos": "DefaultQOS",
    "qos": "QOS",
}
_DEFAULT = (
    "others",
    "description",
    "organization",
    "name",
    "cluster_ref",
    "parent",
    "users",
    "deletion_policy",
    "limits",
    "default",
)


def account(spec: SlurmAccountSpec, name: str, mark: str) -> Account:
    """Return the account that an object of this name specifies; of several entries for a user the first counts."""
    texts = {"Description": spec.description, "Organization": spec.organization}
    users: dict[str, Member] = {}
    for each in spec.users:
        users.setdefault(each.name, Member(_fields(each), each.default))
    return Account(
        cluster=spec.cluster,
        name=spec.account(name),
        mark=mark,
        parent=spec.parent,
        texts={key: text for key, text in texts.items() if text},
        fields=_fields(spec),
        users=users,
    )


def qos(spec: SlurmQOSSpec, name: str, mark: str) -> WantedQos:
    """Return the QOS that an object of this name specifies."""
    return WantedQos(spec.qos(name), mark, spec.description, _fields(spec))


def problems(spec: SlurmAccountSpec | SlurmQOSSpec) -> Iterator[Problem]:
    """Yield the problems of `others`, of users that are listed twice, and of a default QOS outside the list."""
    if isinstance(spec, SlurmQOSSpec):
        yield from _limits("spec.limits", spec, QOS)
        return
    yield from _limits("spec.limits", spec, ASSOCIATION)
    seen: set[str] = set()
    for number, each in enumerate(spec.users):
        path = f"spec.users[{number}]"
        if each.name in seen:
            yield Problem(f"{path}.name", each.name, "the list already has this user: remove one of the two entries")
        seen.add(each.name)
        yield from _limits(f"{path}.limits", each, ASSOCIATION)
    if spec.default_qos and spec.qos and spec.default_qos not in spec.qos:
        yield Problem(
            "spec.defaultQOS", spec.default_qos, "it is not in spec.qos: add it there, or choose one of that list"
        )


def _limits(
    path: str, spec: SlurmAccountSpec | SlurmQOSSpec | AccountUser, known: Mapping[str, Sort]
) -> Iterator[Problem]:
    typed = _fields(spec, typed=True)
    for name, value in typed.items():
        if known[name] in ("tres", "time") and (said := fault(known[name], value)):
            yield Problem(path, f"{name}={value}", said)
    for name, value in spec.limits.others.items():
        if name not in known:
            yield Problem(f"{path}.others.{name}", value, f"unknown field: use one of {', '.join(known)}")
        elif name in typed:
            yield Problem(
                f"{path}.others.{name}", value, "it has its own field, which is also set: remove one of the two"
            )
        elif said := fault(known[name], value):
            yield Problem(f"{path}.others.{name}", value, said)


def _fields(spec: SlurmAccountSpec | SlurmQOSSpec | AccountUser, typed: bool = False) -> dict[str, str]:
    """Return the fields that are set, by sacctmgr's names; with `typed` only those that have a field of their own in the spec."""
    given = {**_given(spec), **_given(spec.limits)}
    return given if typed else {**given, **spec.limits.others}


def _given(model: Model) -> dict[str, str]:
    found = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name not in _DEFAULT and value not in (None, "", [], {}):
            found[_UNLIKE.get(name) or name.title().replace("_", "")] = _text(value)
    return found


def _text(value: object) -> str:
    match value:
        case dict():
            return ",".join(f"{name}={count}" for name, count in value.items())
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)
