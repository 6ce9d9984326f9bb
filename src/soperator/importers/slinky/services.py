"""LoginSet, RestApi, Token and Accounting of Slinky, which are parts of a SlurmCluster."""

import re
from typing import Any

from soperator.api.fields.change import DURATION, seconds
from soperator.api.fields.rest import ADMINISTRATORS
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.report import KEEP, UnreadableInputError
from soperator.importers.parts.slurmdbd import PURGES, purge_age, slurmdbd_line
from soperator.importers.slinky import pods, reasons
from soperator.slurm import conf

_SHORTEST, _LONGEST = 600, 168 * 3600


def login(fields: ForeignFields) -> dict[str, Any]:
    """Return spec.login of a LoginSet, without what `directory` takes."""
    keys = (fields.carried("rootSshAuthorizedKeys", str, "spec.login.rootAuthorizedKeys") or "").splitlines()
    return {
        "replicas": fields.carried("replicas", int, "spec.login.replicas"),
        "rootAuthorizedKeys": [each.strip() for each in keys if each.strip() and not each.strip().startswith("#")],
        "resources": pods.resources(fields, "login", "spec.login.resources"),
        "service": pods.service(fields, "spec.login.service"),
        "scheduling": pods.scheduling(fields, "spec.login.scheduling"),
        "podTemplate": pods.pod_template(fields, "spec.login.podTemplate"),
    }


def directory(fields: ForeignFields) -> dict[str, Any]:
    """Return spec.sssd of a LoginSet, and report the fields that no other part takes."""
    name, key = fields.peek("sssdConfRef.name", str), fields.peek("sssdConfRef.key", str)
    spec: dict[str, Any] = {}
    if name:
        spec = {"configSecretName": name}
        fields.check(
            "sssdConfRef.name", str, "now spec.sssd.configSecretName: the Secret must be in the cluster's namespace"
        )
        if key == "sssd.conf":
            fields.ours("sssdConfRef.key", "the Secret has the entry sssd.conf")
        else:
            fields.left("sssdConfRef.key", "the entry must have the name sssd.conf: rename it in the Secret")
    fields.rest(reasons.LOGIN)
    return spec


def rest_users(fields: ForeignFields) -> dict[str, Any]:
    """Return spec.rest.users of a RestApi, and report its fields."""
    target = "spec.rest.users"
    spec = {
        KEEP: True,
        "replicas": fields.carried("replicas", int, f"{target}.replicas"),
        "service": pods.service(fields, f"{target}.service"),
        "resources": pods.resources(fields, "slurmrestd", f"{target}.resources"),
        "scheduling": pods.scheduling(fields, f"{target}.scheduling"),
        "podTemplate": pods.pod_template(fields, f"{target}.podTemplate"),
    }
    fields.rest(reasons.REST)
    return spec


def token(fields: ForeignFields, name: str) -> dict[str, Any] | None:
    """Return an entry of spec.rest.users.tokens, and report the fields; None for a user with all rights."""
    user = fields.peek("username", str) or ""
    if user in ADMINISTRATORS or not user:
        fields.left("", "a token in a Secret is for a named user without all rights in Slurm")
        fields.rest(reasons.TOKEN)
        return None
    made = {"user": user, "secretName": fields.peek("secretRef.name", str) or f"{name}-jwt-{user}"}
    fields.carried("username", str, "spec.rest.users.tokens[].user")
    reason = "now spec.rest.users.tokens: the operator writes the entries token and user of this Secret"
    if not fields.check("secretRef", dict, reason):
        fields.report.check(fields.place, f"Secret {made['secretName']}", reason)
    lifetime = fields.peek("lifetime", str)
    if lifetime and re.fullmatch(DURATION, lifetime) and _SHORTEST <= seconds(lifetime) <= _LONGEST:
        made["lifetime"] = fields.carried("lifetime", str, "spec.rest.users.tokens[].lifetime") or ""
    else:
        fields.left("lifetime", "a token lives from 10m to 168h: set lifetime")
    fields.rest(reasons.TOKEN)
    return made


def accounting(fields: ForeignFields) -> tuple[dict[str, Any], str]:
    """Return spec.accounting and the extra lines of slurmdbd.conf, and report the fields; raises UnreadableInputError for an external slurmdbd."""
    if fields.peek("external", bool):
        message = f"{fields.where('external')}: true: slurmdbd must run in the cluster: import without this object, and set spec.accounting"
        raise UnreadableInputError(message)
    purge, extra = dict[str, str](), list[conf.Line]()
    for line in conf.logical_lines(fields.read("extraConf")):
        place = f"{fields.where('extraConf')}, line {line.number}"
        for key, value in line.pairs:
            field, age = PURGES.get(key.lower(), ""), purge_age(value)
            if field and not age:
                reason = "write hours, days or months into spec.accounting.purge, such as 12months"
                fields.report.left(place, shown(key, value), reason)
            elif field:
                purge[field] = age
                fields.report.carried(place, shown(key, value), f"spec.accounting.purge.{field}")
            else:
                extra += slurmdbd_line(key, value, (place, shown(key, value)), fields.report)
        if line.rest or line.include:
            fields.report.left(
                place, (line.rest or f"Include {line.include}")[:120], "slurmdbd.conf has Key=Value only"
            )
    spec = {
        KEEP: True,
        "purge": purge,
        "externalDatabase": _database(fields),
        "slurmdbd": {
            "resources": pods.resources(fields, "slurmdbd", "spec.accounting.slurmdbd.resources"),
            "scheduling": pods.scheduling(fields, "spec.accounting.slurmdbd.scheduling"),
            "podTemplate": pods.pod_template(fields, "spec.accounting.slurmdbd.podTemplate"),
        },
    }
    fields.rest(reasons.ACCOUNTING)
    return spec, conf.render(extra)


def _database(fields: ForeignFields) -> dict[str, Any]:
    path, target = "storageConfig", "spec.accounting.externalDatabase"
    host, secret = fields.peek(f"{path}.host", str), fields.peek(f"{path}.passwordKeyRef.name", str)
    if not host or not secret:
        fields.left(
            path,
            "it has no host or no Secret with the password: the operator makes a database of its own, which is empty",
        )
        return {}
    fields.report.check(
        fields.place, target, "slurmdbd here is older: it cannot read a database that a newer one has converted"
    )
    return {
        "host": fields.carried(f"{path}.host", str, f"{target}.host"),
        "port": fields.carried(f"{path}.port", int, f"{target}.port"),
        "user": fields.carried(f"{path}.username", str, f"{target}.user"),
        "database": fields.carried(f"{path}.database", str, f"{target}.database"),
        "password": {
            "secretName": fields.carried(f"{path}.passwordKeyRef.name", str, f"{target}.password.secretName"),
            "key": fields.carried(f"{path}.passwordKeyRef.key", str, f"{target}.password.key"),
        },
    }
