"""`soperator lint`: prints every fault of a file, before anything is applied."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.output import OutputFormat, OutputOption, serialized
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.api.base import Problem
    from soperator.api.validation.validate import World
    from soperator.cli.support.manifests import Manifest


def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; - for standard input.")],
    partial: Annotated[bool, typer.Option(help="Allow references to objects that the files do not contain.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Check the objects in files, and print every problem: file, object, field, value, remedy.

    For example: soperator lint cluster.yaml
    """
    from soperator.cli.support.manifests import load, worlds

    objects = load(files)
    spaces = worlds(objects, partial)
    warnings = [*_warnings(objects), *_notes(objects)]
    found = [(each.file, problem) for each in objects for problem in problems_of(each, spaces)]
    if output is not OutputFormat.TEXT:
        problems = [{"file": file, **asdict(problem)} for file, problem in found]
        data = {"objects": len(objects), "problems": problems, "warnings": warnings}
        typer.echo(serialized(output, data), nl=False)
        raise typer.Exit(1 if found else 0)
    for warning in warnings:
        say(warning, err=True)
    for file, problem in found:
        say(f"{file}: {problem}", err=True)
    if found:
        say(f"{len(found)} problem{'s' if len(found) > 1 else ''}", err=True)
        raise typer.Exit(1)
    say(f"{len(objects)} object{'' if len(objects) == 1 else 's'}, no problems")


def problems_of(found: "Manifest", spaces: "Mapping[str, World]") -> "list[Problem]":
    """Return the problems of one object, among the objects of its namespace."""
    from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
    from soperator.api.backup import SlurmBackupSpec
    from soperator.api.healthcheck import HealthCheckSpec
    from soperator.api.nodeset import NodeSetSpec
    from soperator.policy.validation import (
        backup_problems,
        cluster_problems,
        healthcheck_problems,
        nodeset_problems,
        tenant_problems,
    )

    if found.spec is None or found.faults:
        return list(found.faults)
    world = spaces[found.namespace]
    match found.spec:
        case HealthCheckSpec():
            return list(healthcheck_problems(found.name, found.spec, world))
        case SlurmAccountSpec() | SlurmQOSSpec():
            return list(tenant_problems(found.name, found.spec, world))
        case SlurmBackupSpec():
            return list(backup_problems(found.name, found.spec, world))
        case NodeSetSpec():
            return list(nodeset_problems(found.name, world))
        case _:
            return list(cluster_problems(found.name, world))


def _warnings(objects: "list[Manifest]") -> "Iterator[str]":
    """Return the fields that weaken the isolation between the jail and the Node. They are allowed, so they are warnings and no problems."""
    from soperator.api.nodeset import NodeSetSpec
    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.api.validation.confinement import cluster_loosened, loosened

    for found in objects:
        if isinstance(found.spec, NodeSetSpec):
            weakened = loosened(found.spec)
        elif isinstance(found.spec, SlurmClusterSpec):
            weakened = cluster_loosened(found.spec)
        else:
            continue
        yield from (f"{found.file}: warning: {found.kind} {found.name}: {each}" for each in weakened)


def _notes(objects: "list[Manifest]") -> "Iterator[str]":
    """Return warnings about valid specs that are rarely intended: a cluster into which no user can log in, because a new jail has no users."""
    from soperator.api.slurmcluster import SlurmClusterSpec

    for found in objects:
        spec = found.spec
        if not isinstance(spec, SlurmClusterSpec) or found.faults:
            continue
        if not spec.login.root_authorized_keys and not spec.sssd.config_secret_name:
            remedy = "root cannot log in, and a new jail has no other user: add a public key"
            yield f"{found.file}: note: SlurmCluster {found.name}: spec.login.rootAuthorizedKeys: empty: {remedy}"
