"""Accounting of the original: slurmdbd, its database, and their settings in camel case."""

from typing import Any

from soperator.importers.nebius.roles import resources, scheduling
from soperator.importers.parts.fields import ForeignFields, steps_of
from soperator.importers.parts.free_settings import add_free, shown
from soperator.importers.parts.report import KEEP
from soperator.importers.parts.slurmdbd import purge_age
from soperator.slurm import conf

_HERE = "slurmNodes.accounting"
_PURGES = {
    "purgeEventAfter": "events",
    "purgeJobAfter": "jobs",
    "purgeResvAfter": "reservations",
    "purgeStepAfter": "steps",
    "purgeSuspendAfter": "suspensions",
    "purgeTXNAfter": "transactions",
    "purgeUsageAfter": "usage",
}
_LINES = {
    "debugLevel": "DebugLevel",
    "tcpTimeout": "TCPTimeout",
    "privateData": "PrivateData",
    "debugFlags": "DebugFlags",
}


def capitalized_settings(fields: ForeignFields, path: str, extra: list[conf.Line]) -> None:
    """Add the settings of slurm.conf in a map, whose keys begin with a small letter, to the extra lines, and report them."""
    for key, value in (fields.peek(path, dict) or {}).items():
        if value is None:
            continue
        fields.taken.add(steps_of(f"{path}.{key}"))
        name, text = f"{key[:1].upper()}{key[1:]}", str(value)
        if text:
            add_free(extra, (fields.place, name, text, f"spec.{path}.{shown(key, text)}"), fields.report)


def accounting_spec(fields: ForeignFields, extra: list[conf.Line], used: set[str]) -> tuple[dict[str, Any], str]:
    """Return spec.accounting and the extra lines of slurmdbd.conf; both empty if accounting is off."""
    if not fields.carried(f"{_HERE}.enabled", bool, "spec.accounting"):
        fields.left(_HERE, "accounting is off there")
        return {}, ""
    purge, lines = _slurmdbd_conf(fields)
    capitalized_settings(fields, f"{_HERE}.slurmConfig", extra)
    slurmdbd = {
        "resources": resources(fields, f"{_HERE}.slurmdbd.resources", "spec.accounting.slurmdbd.resources"),
        "scheduling": scheduling(fields, _HERE, "spec.accounting.slurmdbd.scheduling", used),
    }
    spec = {KEEP: True, "slurmdbd": slurmdbd, "purge": purge, "externalDatabase": _external(fields)}
    if not spec["externalDatabase"]:
        spec["mariadbOperator"] = _mariadb(fields)
        reason = "the database is new and empty: name the former one as externalDatabase to keep the history"
        fields.report.check(fields.place, "spec.accounting", reason)
    elif not fields.peek(f"{_HERE}.mariadbOperator.enabled", bool):
        fields.ours(f"{_HERE}.mariadbOperator", "an external database is used there")
    return spec, lines


def _slurmdbd_conf(fields: ForeignFields) -> tuple[dict[str, str], str]:
    purge, lines = dict[str, str](), list[conf.Line]()
    path = f"{_HERE}.slurmdbdConfig"
    for key, value in (fields.peek(path, dict) or {}).items():
        if key in _PURGES and (age := purge_age(str(value))):
            fields.taken.add(steps_of(f"{path}.{key}"))
            fields.report.carried(fields.place, f"spec.{path}.{key}: {value}", f"spec.accounting.purge.{_PURGES[key]}")
            purge[_PURGES[key]] = age
        elif key in _LINES and value not in (None, ""):
            fields.taken.add(steps_of(f"{path}.{key}"))
            fields.report.carried(fields.place, f"spec.{path}.{key}: {value}"[:120], "spec.config.extraLines.slurmdbd")
            lines.append(conf.Line(((_LINES[key], str(value)),)))
        elif key.startswith("archive"):
            fields.left(
                f"{path}.{key}",
                "set spec.accounting.archive.claimName to a claim, to which slurmdbd then archives what it purges",
            )
    return purge, conf.render(lines)


def _external(fields: ForeignFields) -> dict[str, Any]:
    path, target = f"{_HERE}.externalDB", "spec.accounting.externalDatabase"
    if not fields.peek(f"{path}.enabled", bool):
        fields.ours(path, "the external database is off there")
        return {}
    fields.carried(f"{path}.enabled", bool, target)
    secret = fields.carried(f"{path}.passwordSecretKeyRef.name", str, f"{target}.password.secretName")
    made: dict[str, Any] = {
        "host": fields.carried(f"{path}.host", str, f"{target}.host"),
        "port": fields.carried(f"{path}.port", int, f"{target}.port"),
        "user": fields.carried(f"{path}.user", str, f"{target}.user"),
        "password": {
            "secretName": secret,
            "key": fields.carried(f"{path}.passwordSecretKeyRef.key", str, f"{target}.password.key"),
        },
    }
    authority = fields.check(
        f"{path}.tls.serverCASecretRef", str, f"now {target}.tls.ca, with the entry ca.crt of the Secret"
    )
    client = fields.carried(f"{path}.tls.clientCertSecretRef", str, f"{target}.tls.certificateSecretName")
    if authority or client:
        made["tls"] = {"ca": {"secretName": authority}, "certificateSecretName": client}
    return made


def _mariadb(fields: ForeignFields) -> dict[str, Any]:
    path, target = f"{_HERE}.mariadbOperator", "spec.accounting.mariadbOperator"
    if not fields.peek(f"{path}.enabled", bool):
        fields.ours(path, "mariadb-operator is not used there")
        return {}
    fields.carried(f"{path}.enabled", bool, target)
    return {
        "replicas": fields.carried(f"{path}.replicas", int, f"{target}.replicas"),
        "size": fields.carried(f"{path}.storage.size", str, f"{target}.size"),
        "storageClassName": fields.carried(f"{path}.storage.storageClassName", str, f"{target}.storageClassName"),
        "resources": resources(fields, f"{path}.resources", f"{target}.resources"),
    }
