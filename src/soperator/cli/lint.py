"""`soperator lint`: prints every fault of a file, before anything is applied."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.cli.support.manifests import Manifest


def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; - for standard input.")],
    partial: Annotated[bool, typer.Option(help="Allow references to objects that the files do not contain.")] = False,
) -> None:
    """Check the objects in files, and print every problem: file, object, field, value, remedy."""
    from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
    from soperator.api.backup import SlurmBackupSpec
    from soperator.api.healthcheck import HealthCheckSpec
    from soperator.api.nodeset import NodeSetSpec
    from soperator.cli.support.manifests import load, worlds
    from soperator.policy.validation import (
        backup_problems,
        cluster_problems,
        healthcheck_problems,
        nodeset_problems,
        tenant_problems,
    )

    objects = load(files)
    spaces = worlds(objects, partial)
    for warning in _warnings(objects):
        say(warning, err=True)
    lines = []
    for found in objects:
        problems = list(found.faults)
        if found.spec is not None and not problems:
            world = spaces[found.namespace]
            match found.spec:
                case HealthCheckSpec():
                    problems += healthcheck_problems(found.name, found.spec, world)
                case SlurmAccountSpec() | SlurmQOSSpec():
                    problems += tenant_problems(found.name, found.spec, world)
                case SlurmBackupSpec():
                    problems += backup_problems(found.name, found.spec, world)
                case NodeSetSpec():
                    problems += nodeset_problems(found.name, world)
                case _:
                    problems += cluster_problems(found.name, world)
        lines += [f"{found.file}: {problem}" for problem in problems]
    for line in lines:
        say(line, err=True)
    if lines:
        say(f"{len(lines)} problem{'s' if len(lines) > 1 else ''}", err=True)
        raise typer.Exit(1)
    say(f"{len(objects)} object{'' if len(objects) == 1 else 's'}, no problems")


def _warnings(objects: "list[Manifest]") -> "Iterator[str]":
    """Return the fields that weaken the isolation between the jail and the Node. They are allowed, so they are warnings and no problems."""
    from soperator.api.nodeset import NodeSetSpec
    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.api.validation.confinement import cluster_loosened, loosened

    for found in objects:
        if isinstance(found.spec, NodeSetSpec):
            told = loosened(found.spec)
        elif isinstance(found.spec, SlurmClusterSpec):
            told = cluster_loosened(found.spec)
        else:
            continue
        yield from (f"{found.file}: warning: {found.kind} {found.name}: {each}" for each in told)
