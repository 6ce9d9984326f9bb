"""`soperator token`: prints a user's token for slurmrestd, signed here with the cluster's key.

A person who may read the Secret with the key can already act as any user of Slurm, so this grants no new right. It only signs, and refuses tokens of
an administrator, of an unknown user, or without expiry.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.render.parts.model import Cluster

_SHORTEST = 60


def token(
    user: Annotated[str, typer.Argument(help="User of the token: a user of the jail or of the directory.")],
    cluster: Annotated[str, typer.Option("--cluster", "-c", help="Name of the SlurmCluster.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the cluster; default: that of the kubeconfig.")
    ] = "",
    lifetime: Annotated[
        str, typer.Option(help="Lifetime, such as 30m or 8h: at most spec.rest.users.maxLifetime.")
    ] = "1h",
    admin: Annotated[bool, typer.Option("--admin", help="Allow an administrator of Slurm, such as root.")] = False,
) -> None:
    """Print a token for slurmrestd as a user of the cluster, and nothing else, so that a script can read it."""
    with report_errors(cluster):
        typer.echo(asyncio.run(_token(user, cluster, namespace, lifetime, admin)))


async def _token(user: str, name: str, namespace: str, lifetime: str, admin: bool) -> str:
    """Return the token; raises CliError with the cause as its message, or KubeError."""
    from soperator.kube.api import Api
    from soperator.kube.kinds import SECRET, SLURMCLUSTER
    from soperator.kube.objects import Secret
    from soperator.kube.views import Custom
    from soperator.reconcile.cache.decode import read_cluster
    from soperator.render.cluster.keys import REST_FILE
    from soperator.render.parts import names
    from soperator.render.parts.model import Cluster
    from soperator.slurmrest.token import sign

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        cluster = read_cluster(await api.get(SLURMCLUSTER, Custom, where, name))
        if not isinstance(cluster, Cluster):
            raise CliError("\n".join(map(str, cluster)))
        long = bounded(lifetime, cluster.spec.rest.users_or_default.max_lifetime)
        await _check(api, cluster, user, admin)
        secret = await api.get(SECRET, Secret, where, names.jwt_key(name))
    return sign(secret.data[REST_FILE], user, int(time.time()), long)


def bounded(lifetime: str, longest: str) -> int:
    """Return the seconds of a lifetime; raises CliError if it is too long or too short."""
    from soperator.api.fields.change import seconds

    try:
        found = seconds(lifetime)
    except ValueError as error:
        raise CliError(f"--lifetime: {error}") from None
    if not _SHORTEST <= found <= seconds(longest):
        raise CliError(f"--lifetime: {lifetime}: give from 1m to {longest}, which is spec.rest.users.maxLifetime")
    return int(found)


async def _check(api: "Api", cluster: "Cluster", user: str, admin: bool) -> None:
    """Check with slurmctld that a user may have a token; raises CliError if not. If slurmctld cannot be queried, a note reports that."""
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.reconcile.keys.user_tokens import refusal
    from soperator.slurmrest.client import SlurmError

    try:
        why = refusal(user, await PodExec(api).uid(cluster, user), admin)
    except SlurmError as error:
        why = refusal(user, -1, admin)
        say(f"Note: slurmctld could not look up user {user}: {error}", err=True)
    if why:
        raise CliError(f"{why}{', or give --admin' if 'administrator' in why else ''}")
