"""`soperator bundle`: writes the support archive of a cluster, for a person who cannot access the cluster, without any content of Secrets."""

import asyncio
import io
import os
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.output import ClusterArgument, NamespaceOption
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.cli.archive.collect import ArchiveContent, ArchiveSource
    from soperator.cli.archive.redaction import Redaction

_README = """Support archive of SlurmCluster {cluster}, written by soperator {version} at {when}.

status.txt, why.txt   the state, and what is wrong, in sentences
objects/              objects in Kubernetes as JSON lists; of Secrets only names and keys
files/                slurm.conf and the other files that the operator wrote
slurm/                answers of slurmctld
logs/                 the last lines of each container; .previous is the log before a restart
operator/             metrics of the operator
errors.txt            what could not be read

Removed, and shown as (redacted): values of environment variables, passwords, private keys and tokens, {searched}.
Names of users, jobs and hosts are in it.
"""
_SEARCHED = "and the content of every Secret of the namespaces, searched for in each file"
_UNSEARCHED = "but the content of Secrets was NOT searched for"


def bundle(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.tar.gz", help="The archive to write; it must not exist yet.")
    ],
    name: ClusterArgument = "",
    namespace: NamespaceOption = "",
    unsearched: Annotated[
        bool,
        typer.Option(
            "--unsearched", help="Write it although Secrets cannot be read, so that logs may contain parts of them."
        ),
    ] = False,
) -> None:
    """Write a support archive: objects, events, logs, Slurm's files and answers, metrics and explanations, without any content of Secrets.

    For example: soperator bundle demo -n slurm -o demo.tar.gz
    """
    with report_errors(name):
        files, errors = asyncio.run(_collect(name, namespace, unsearched))
        write(output, files)
        size = output.stat().st_size / 1024
        say(
            f"{output}: {len(files)} files, {size:.0f} KiB"
            + (f"; {errors} parts could not be read, see errors.txt in it" if errors else "")
        )


async def _collect(name: str, namespace: str, unsearched: bool) -> tuple[dict[str, bytes], int]:
    from soperator.cli.archive.collect import ArchiveSource
    from soperator.cli.support.find_cluster import connected, find_cluster
    from soperator.kube.exec import exec as run_in_pod

    async with connected(namespace) as (api, where):
        source = ArchiveSource(api, await find_cluster(api, where, name), run_in_pod)
        made, redaction = await gather(source, unsearched)
        return cleaned(made, redaction, source.cluster.metadata.name, unsearched), len(made.errors)


async def gather(source: "ArchiveSource", unsearched: bool = False) -> "tuple[ArchiveContent, Redaction]":
    """Return the collected files, and the search that removes secrets from them.

    Raises CliError if Secrets cannot be read, unless the options accept that.
    """
    from soperator.cli.archive.collect import collect, secret_values
    from soperator.cli.archive.redaction import Redaction
    from soperator.kube.errors import KubeError

    before: list[bytes] = []
    namespaces = {source.namespace, *await _namespaces_of_operator(source)}
    try:
        before = await secret_values(source.api, namespaces)
        made = await collect(source)
        after = await secret_values(source.api, namespaces)  # a key that was made meanwhile
    except KubeError as error:
        if not unsearched:
            message = f"Secrets of {', '.join(sorted(namespaces))} cannot be read, so their content cannot be searched for in logs: {error}"
            raise CliError(f"{message}; use an account that may list them, or give --unsearched") from None
        made, after = await collect(source), []
    return made, Redaction({*before, *after}, _harmless(source))


def _harmless(source: "ArchiveSource") -> set[str]:
    """Return words in Secrets that are not secret and occur in many files, such as the name of a user or a database."""
    return {
        source.cluster.metadata.name,
        source.namespace,
        "slurm",
        "soperator",
        "root",
        "mysql",
        "mariadb",
        "true",
        "false",
        "null",
        "default",
    }


async def _namespaces_of_operator(source: "ArchiveSource") -> set[str]:
    """Return the namespaces of the operator's pods: of those whose logs are collected, so that none is collected without a search."""
    from soperator.cli.archive.collect import OPERATOR
    from soperator.kube.errors import KubeError
    from soperator.kube.kinds import POD
    from soperator.kube.views import Meta

    try:
        found = await source.api.list(POD, Meta, None, labels=OPERATOR)
    except KubeError:  # then none of them is collected either
        return set()
    return {each.metadata.namespace for each in found.items}


def cleaned(made: "ArchiveContent", redaction: "Redaction", cluster: str, unsearched: bool) -> dict[str, bytes]:
    """Return the files of the archive without secrets. Raises CliError if a file still has one."""
    from soperator import __version__

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    searched = _UNSEARCHED if unsearched else _SEARCHED
    files = {
        **made.files,
        "README.txt": _README.format(cluster=cluster, version=__version__, when=when, searched=searched).encode(),
        "versions/soperator.txt": f"{__version__}\n".encode(),
        "errors.txt": "".join(f"{each}\n" for each in sorted(made.errors)).encode() or b"nothing\n",
    }
    found = {path: redaction.clean(content) for path, content in files.items()}
    if left := [path for path, content in found.items() if redaction.finds(content)]:
        raise CliError(
            f"{left[0]}: the file still has content of a Secret after the redaction, so no archive was written: report this as a defect"
        )
    return found


def write(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the archive, readable for its owner only; raises CliError if the file exists or cannot be written."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{path.name.removesuffix('.tar.gz').removesuffix('.tgz')}/{name}")
            entry.size, entry.mode, entry.mtime = len(files[name]), 0o600, int(time.time())
            archive.addfile(entry, io.BytesIO(files[name]))
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(packed.getvalue())
    except FileExistsError:
        raise CliError(f"--output: {path} exists already: give another name") from None
    except OSError as error:
        raise CliError(f"--output: {path}: {error.strerror}") from None
