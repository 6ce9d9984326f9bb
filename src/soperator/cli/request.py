"""`soperator request`: requests a single action of the operator: new keys, a repaired jail, an upgrade, a run of a check, a backup.

Each action has a field in a spec, and a new value of it is a new request. This verb writes a new value with its own field manager, so that
it does not take over fields of a GitOps tool: if another manager owns the field, the error names it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.kinds import Kind
    from soperator.kube.views import Custom


@dataclass(frozen=True)
class RequestField:
    """One possible request: the kind and the path of its field, other fields that are set with it, and a warning if it is dangerous."""

    kind: str
    path: tuple[str, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)
    danger: str = ""


_OVERWRITE = (
    "it drains all workers, closes login and replaces the whole root; jail.refill.keep lists the paths that stay"
)
REQUESTS: Mapping[str, RequestField] = MappingProxyType(
    {
        "keys": RequestField("SlurmCluster", ("auth", "rotateRequest")),
        "repair-jail": RequestField("SlurmCluster", ("jail", "refill", "request"), {"mode": "Missing"}),
        "replace-jail": RequestField("SlurmCluster", ("jail", "refill", "request"), {"mode": "Overwrite"}, _OVERWRITE),
        "upgrade": RequestField("SlurmCluster", ("upgrade", "request")),
        "check": RequestField("HealthCheck", ("when", "runRequest")),
        "backup": RequestField("SlurmBackup", ("runRequest",)),
    }
)

#: The lists of completed requests in the status of a SlurmCluster, by the first part of the field's path.
COMPLETED = {"auth": "keys", "jail": "refill", "upgrade": "upgrade"}


def request(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="keys, repair-jail, replace-jail or upgrade for a SlurmCluster; check for a HealthCheck; backup for a SlurmBackup.",
        ),
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the SlurmCluster, or of the HealthCheck or SlurmBackup.")
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the object; default: that of the kubeconfig.")
    ] = "",
    word: Annotated[str, typer.Option(help="Value of the request; default: the current time.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Also request an action that drains workers.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Take the field from the manager that owns it.")] = False,
) -> None:
    """Request something that happens once: new keys, a repaired or replaced jail, the operator's new images, a run of a check, a backup."""
    with report_errors(name):
        requested = chosen(what, yes)
        made = word or datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        asyncio.run(_request(requested, (namespace, name), made, force))
    field_ = ".".join(("spec", *requested.path))
    say(f"{requested.kind} {name}: {field_} is {made}; `soperator why` and its conditions have the progress")


def chosen(what: str, yes: bool) -> RequestField:
    """Return the request of this name; raises CliError if it does not exist, or if it is dangerous and not confirmed."""
    if what not in REQUESTS:
        raise CliError(f"{what}: unknown request: use one of {', '.join(REQUESTS)}")
    requested = REQUESTS[what]
    if requested.danger and not yes:
        raise CliError(f"{what}: {requested.danger}: give --yes to request it")
    return requested


def former(obj: "Custom", path: tuple[str, ...]) -> str:
    """Return the present value of a request's field; empty if there is none."""
    import msgspec

    found: Any = msgspec.json.decode(obj.spec)
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def completed(obj: "Custom", path: tuple[str, ...]) -> Sequence[str]:
    """Return the completed values of a request's field, from the status."""
    found: Any = obj.status.get("completedRequests", ())
    values: Sequence[str] = found.get(COMPLETED[path[0]], ()) if isinstance(found, dict) else found
    return values


def body(kind: "Kind", obj: "Custom", requested: RequestField, word: str) -> dict[str, Any]:
    """Return the object with only the fields of the request, and its uid, so that the apply does not create an object that no longer exists."""
    inner: dict[str, Any] = {**requested.beside, requested.path[-1]: word}
    for key in reversed(requested.path[:-1]):
        inner = {key: inner}
    meta = {"name": obj.metadata.name, "namespace": obj.metadata.namespace, "uid": obj.metadata.uid}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": inner}


async def _request(requested: RequestField, key: tuple[str, str], word: str, force: bool) -> None:
    from soperator.kube.api import Api

    async with Api.connect("soperator-cli") as api:
        await send(api, requested, (key[0] or api.namespace, key[1]), word, force)


async def send(api: "Api", requested: RequestField, key: tuple[str, str], word: str, force: bool = False) -> None:
    """Write the request into the object of this namespace and name; raises CliError with the cause as its message, or KubeError."""
    from soperator.kube.errors import Conflict, Invalid, NotFound
    from soperator.kube.kinds import HEALTHCHECK, SLURMBACKUP, SLURMCLUSTER
    from soperator.kube.views import Custom

    kind = next(each for each in (SLURMCLUSTER, HEALTHCHECK, SLURMBACKUP) if each.kind == requested.kind)
    at = f"{requested.kind} {key[1]}: {'.'.join(('spec', *requested.path))}"
    try:
        obj = await api.get(kind, Custom, *key)
        if former(obj, requested.path) == word:
            raise CliError(f"{at}: {word} is the last request already: give another value")
        if word in completed(obj, requested.path):
            raise CliError(f"{at}: {word} was carried out before and is not carried out again: give another value")
        await api.apply(kind, body(kind, obj, requested, word), force=force, manager=f"soperator-{requested.path[0]}")
    except NotFound:
        raise CliError(
            f"{requested.kind} {key[1]}: there is none in namespace {key[0]}: give its name, or -n"
        ) from None
    except Conflict as error:
        message = f"another manager owns the field: write {word} where its spec comes from, or give --force ({error})"
        raise CliError(f"{at}: {message}") from None
    except Invalid as error:
        raise CliError(f"{at}: {word} is refused: {error}") from None
