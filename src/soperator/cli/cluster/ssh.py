"""`soperator ssh`: logs in to a cluster, or through its login node to a worker, with the ssh program of this machine.

Without an address outside Kubernetes (a Service of type ClusterIP, or --forward) kubectl forwards a local port to the login Service. ssh
stores the host key under the name of the cluster, because all login nodes have the same key and a forwarded port has a different address
each time.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.output import ClusterArgument, NamespaceOption

if TYPE_CHECKING:
    from soperator.kube.api import Api

_ADDRESS = re.compile(r"ssh -p (\d+) \S+@(\S+)")
#: The key in the context's memory under which the words after -- wait for the verb.
_COMMAND = "soperator.ssh.command"


class WithCommand(TyperCommand):
    """A verb that passes the words after `--` to another program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Separate the words after the first `--`, and parse the others as usual."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[place + 1 :]
        return super().parse_args(ctx, args[:place])


@dataclass(frozen=True)
class LoginAddress:
    """The address of the login nodes; without a host, the client uses a forwarded port of the Service."""

    cluster: str
    namespace: str
    host: str = ""
    port: int = 22

    @property
    def alias(self) -> str:
        """The name under which ssh stores the host key."""
        return f"soperator.{self.namespace}.{self.cluster}"


def ssh(
    ctx: typer.Context,
    name: ClusterArgument = "",
    worker: Annotated[
        str, typer.Argument(help="Slurm node to log in to, where the user has a job.", metavar="[WORKER]")
    ] = "",
    user: Annotated[str, typer.Option("--user", "-l", help="User to log in as.")] = "root",
    identity: Annotated[
        str, typer.Option("--identity", "-i", metavar="FILE", help="Private key; default: the keys that ssh tries.")
    ] = "",
    forward: Annotated[
        bool, typer.Option("--forward", help="Reach the login nodes through Kubernetes, by kubectl port-forward.")
    ] = False,
    namespace: NamespaceOption = "",
) -> None:
    """Log in to a cluster, or to one of its workers; words after -- are run there.

    For example: soperator ssh demo -l alice, soperator ssh demo worker-0 -l alice -- nvidia-smi
    """
    with report_errors(name):
        address = asyncio.run(_address(name, namespace, forward))
        with reachable(address) as at:
            words = command(at, (user, identity), worker, ctx.meta.get(_COMMAND, []))
            try:
                code = subprocess.run(words, check=False).returncode
            except FileNotFoundError:
                raise CliError("ssh is not installed here, or not on PATH: install the OpenSSH client") from None
    raise typer.Exit(code)


def command(at: LoginAddress, who: tuple[str, str], worker: str, rest: Sequence[str]) -> list[str]:
    """Return the ssh command to the login nodes, or through them to a worker; `who` is the user and the private key."""
    user, identity = who
    key = ["-i", identity] if identity else []
    terminal = ["-t"] if rest and sys.stdin.isatty() else []
    login = [*key, "-p", str(at.port), "-o", f"HostKeyAlias={at.alias}"]
    if not worker:
        return ["ssh", *login, *terminal, f"{user}@{at.host}", *rest]
    hop = shlex.join(["ssh", *login, "-W", "%h:%p", f"{user}@{at.host}"])
    alias = f"HostKeyAlias={at.alias}.{worker}"
    return ["ssh", *key, "-o", f"ProxyCommand={hop}", "-o", alias, *terminal, f"{user}@{worker}", *rest]


async def _address(name: str, namespace: str, forward: bool) -> LoginAddress:
    from soperator.cli.support.find_cluster import connected

    async with connected(namespace) as (api, where):
        return await find_address(api, where, name, forward)


async def find_address(api: "Api", namespace: str, name: str, forward: bool) -> LoginAddress:
    """Return the address of the login nodes; raises CliError if no login pod is ready, and KubeError."""
    from soperator.cli.support.find_cluster import find_cluster
    from soperator.cli.support.find_pods import login_container
    from soperator.kube.kinds import SERVICE
    from soperator.kube.objects import Service
    from soperator.render.parts import names

    cluster = await find_cluster(api, namespace, name)
    await login_container(api, cluster)
    called = cluster.metadata.name
    service = await api.get(SERVICE, Service, namespace, names.login(called))
    found = _ADDRESS.fullmatch(str(cluster.status.get("address", "")))
    if forward or service.spec.type in ("", "ClusterIP") or not found:
        return LoginAddress(called, namespace)
    return LoginAddress(called, namespace, found[2], int(found[1]))


@contextmanager
def reachable(address: LoginAddress) -> Iterator[LoginAddress]:
    """Forward a port with kubectl for as long as the context lasts, if the address has no host. Raises CliError."""
    if address.host:
        yield address
        return
    context = ["--context", chosen] if (chosen := os.environ.get("SOPERATOR_CONTEXT")) else []
    words = [
        "kubectl",
        *context,
        "-n",
        address.namespace,
        "port-forward",
        f"service/{address.cluster}-login",
        ":ssh",
        "--address=127.0.0.1",
    ]
    try:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise CliError(
            "kubectl is not on PATH, and it forwards the port: install it, or expose login by spec.login.service.type"
        ) from None
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        if not (found := re.search(r"127\.0\.0\.1:(\d+)", line)):
            raise CliError(f"kubectl port-forward: {process.stderr.read().strip() or 'it ended without a message'}")
        yield LoginAddress(address.cluster, address.namespace, "127.0.0.1", int(found[1]))
    finally:
        process.terminate()
        process.communicate()
