"""Collects all problems of an object from every layer that can find one.

Both the pass and `soperator lint` use this module, so that the operator accepts what lint accepts. A problem stops changes of the object that it
names; what already runs does not change.
"""

from collections.abc import Iterator
from dataclasses import replace

from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
from soperator.api.backup import SlurmBackupSpec
from soperator.api.base import Problem
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.validation.validate import (
    World,
    validate_backup,
    validate_cluster,
    validate_healthcheck,
    validate_nodeset,
    validate_tenant,
)
from soperator.checks import node_plan
from soperator.checks.deep_check import limit_names, shipped_deep
from soperator.policy.associations import from_spec
from soperator.slurm.settings.lint import lint_cluster, lint_nodeset


def cluster_problems(name: str, world: World) -> list[Problem]:
    """Return the problems of one SlurmCluster of the world, each with the object as its subject."""
    spec = world.clusters[name]
    found = [
        *validate_cluster(name, spec, world),
        *_about(f"SlurmCluster {name}", [*lint_cluster(spec), *node_plan.problems(spec.health)]),
    ]
    return _unique(found)


def nodeset_problems(name: str, world: World) -> list[Problem]:
    """Return the problems of one NodeSet of the world, each with the object as its subject."""
    spec = world.node_sets[name]
    of = world.clusters.get(spec.cluster)
    found = lint_nodeset(spec, bool(of and of.images.slurm))
    return _unique([*validate_nodeset(name, spec, world), *_about(f"NodeSet {name}", found)])


def healthcheck_problems(name: str, spec: HealthCheckSpec, world: World) -> list[Problem]:
    """Return the problems of one HealthCheck among the given objects, each with the HealthCheck as its subject."""
    unknown = [replace(each, subject=f"HealthCheck {name}") for each in _unknown_check(spec)]
    return _unique([*validate_healthcheck(name, spec, world), *unknown])


def tenant_problems(name: str, spec: SlurmAccountSpec | SlurmQOSSpec, world: World | None = None) -> list[Problem]:
    """Return the problems of one SlurmAccount or SlurmQOS; without the other objects, only the problems of its own spec."""
    subject = f"{type(spec).__name__.removesuffix('Spec')} {name}"
    return _unique([*validate_tenant(name, spec, world), *_about(subject, list(from_spec.problems(spec)))])


def backup_problems(name: str, spec: SlurmBackupSpec, world: World | None = None) -> list[Problem]:
    """Return the problems of one SlurmBackup; without the other objects, only the problems of its own spec."""
    return _unique(list(validate_backup(name, spec, world)))


def _unknown_check(spec: HealthCheckSpec) -> Iterator[Problem]:
    """Yield the problems of a shipped check: an unknown name, or a threshold that the check does not have."""
    known = {each.name: each for each in shipped_deep()}
    if spec.check and spec.check not in known:
        yield Problem("spec.check", spec.check, f"no shipped check has this name: use one of {', '.join(known)}")
    names = limit_names(known[spec.check]) if spec.check in known else []
    for each in spec.thresholds:
        if each not in names:
            there = ", ".join(names) or "none"
            yield Problem(
                f"spec.thresholds.{each}",
                each,
                f"the check has no threshold of this name: remove it; its thresholds: {there}",
            )


def problems(world: World) -> list[Problem]:
    """Return the problems of every object of the world, clusters first."""
    return [
        *(problem for name in world.clusters for problem in cluster_problems(name, world)),
        *(problem for name in world.node_sets for problem in nodeset_problems(name, world)),
        *(problem for name, spec in world.health_checks.items() for problem in healthcheck_problems(name, spec, world)),
    ]


def _about(subject: str, found: list[Problem]) -> list[Problem]:
    return [Problem(problem.field, problem.value, problem.remedy, subject) for problem in found]


def _unique(found: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(found))
