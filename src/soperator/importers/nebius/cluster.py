"""The SlurmCluster of the original."""

from typing import Any

from soperator.importers.nebius import reasons
from soperator.importers.nebius.accounting import accounting_spec, capitalized_settings
from soperator.importers.nebius.partitions import Nodes, partitions
from soperator.importers.nebius.roles import report_filters, resources, scheduling
from soperator.importers.nebius.volumes import leave_jail, named_sources, new_claim, report_sources, submounts
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.free_settings import free_lines
from soperator.importers.parts.report import KEEP
from soperator.slurm import conf

_LOGIN, _CONTROLLER = "slurmNodes.login", "slurmNodes.controller"


def login_submounts(fields: ForeignFields, used: dict[str, set[str]]) -> list[dict[str, Any]]:
    """Return the mounts in the jail of login nodes, which become those of all nodes."""
    return submounts(fields, f"{_LOGIN}.volumes.jailSubMounts", named_sources(fields), used["sources"])


def cluster_spec(
    fields: ForeignFields, nodes: Nodes, shared: list[dict[str, Any]], used: dict[str, set[str]]
) -> dict[str, Any]:
    """Return the spec of a SlurmCluster, and report every field. `used` has the filters and sources that other roles use."""
    extra: list[conf.Line] = []
    capitalized_settings(fields, "slurmConfig", extra)
    accounting, slurmdbd = accounting_spec(fields, extra, used["filters"])
    extra += _custom(fields)
    spec = {
        "controller": _controller(fields, used["filters"]),
        "login": _login(fields, used["filters"]),
        "jail": {"submounts": shared},
        "partitions": partitions(fields, nodes, _feature_sets(fields)),
        "config": {"extraLines": {"slurm": conf.render(extra), "slurmdbd": slurmdbd}, "files": _mpi_conf(fields)},
        "accounting": accounting,
        "metrics": _metrics(fields),
    }
    if (fields.peek("maintenance", str) or "none") == "none":
        fields.ours("maintenance", "none is a cluster that runs")
    if not fields.peek("pause", bool):
        fields.ours("pause", "the cluster runs")
    report_filters(fields, used["filters"])
    report_sources(fields, named_sources(fields), used["sources"])
    fields.rest(reasons.CLUSTER)
    return spec


def _custom(fields: ForeignFields) -> list[conf.Line]:
    path = "customSlurmConfig"
    return free_lines(fields.read(path), fields.where(path), fields.report)


def _controller(fields: ForeignFields, used: set[str]) -> dict[str, Any]:
    size = fields.peek(f"{_CONTROLLER}.size", int) or 1
    fields.carried(f"{_CONTROLLER}.size", int, "spec.controller.replicas")
    leave_jail(fields, f"{_CONTROLLER}.volumes.jail")
    return {
        "replicas": size if size > 1 else None,
        "resources": resources(fields, f"{_CONTROLLER}.slurmctld.resources", "spec.controller.resources"),
        "state": new_claim(fields, f"{_CONTROLLER}.volumes.spool", "spec.controller.state"),
        "scheduling": scheduling(fields, _CONTROLLER, "spec.controller.scheduling", used),
    }


def _login(fields: ForeignFields, used: set[str]) -> dict[str, Any]:
    leave_jail(fields, f"{_LOGIN}.volumes.jail")
    keys = fields.carried(f"{_LOGIN}.sshRootPublicKeys", list, "spec.login.rootAuthorizedKeys") or []
    kind = fields.carried(f"{_LOGIN}.sshdServiceType", str, "spec.login.service.type")
    return {
        "replicas": fields.carried(f"{_LOGIN}.size", int, "spec.login.replicas"),
        "rootAuthorizedKeys": [str(each) for each in keys],
        "resources": resources(fields, f"{_LOGIN}.sshd.resources", "spec.login.resources"),
        "scheduling": scheduling(fields, _LOGIN, "spec.login.scheduling", used),
        "service": {
            "type": kind,
            "annotations": fields.carried(f"{_LOGIN}.sshdServiceAnnotations", dict, "spec.login.service.annotations"),
            "nodePort": fields.carried(f"{_LOGIN}.sshdServiceNodePort", int, "spec.login.service.nodePort") or None,
        },
    }


def _feature_sets(fields: ForeignFields) -> dict[str, str]:
    """Return the feature behind each nodeset of Slurm that workerFeatures defines."""
    found = {}
    for number in fields.indexes("workerFeatures"):
        name = fields.peek(f"workerFeatures[{number}].nodesetName", str)
        if name:
            found[name] = fields.peek(f"workerFeatures[{number}].name", str) or ""
    return found


def _mpi_conf(fields: ForeignFields) -> list[dict[str, str]]:
    environment = fields.peek("mpiConfig.pmixEnv", str)
    if not environment or '"' in environment or "\n" in environment:
        return []
    fields.check("mpiConfig.pmixEnv", str, "now mpi.conf in spec.config.files: interfaces of pods may have other names")
    return [{"name": "mpi.conf", "text": conf.render([conf.line(PMIxEnv=environment)])}]


def _metrics(fields: ForeignFields) -> dict[str, Any]:
    if not fields.peek("slurmNodes.exporter.enabled", bool):
        return {}
    fields.carried("slurmNodes.exporter.enabled", bool, "spec.metrics.exporter")
    return {"exporter": {KEEP: True}}
