"""Writes the script that makes a host outside Kubernetes a node, or a login host, of a cluster.

The host then runs the containers of a pod of the same role, with podman or docker. The script is derived from a running pod, so it has the
same image, settings and mounts. Three things differ. The host has its own network, so a separate container maintains the names that pods
find by their search domain in the host's /etc/hosts (images/slurm, role `names`). Claims are file systems that the host has mounted. The
SSH between pods does not reach the host.
"""

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from soperator.api.validation.quantity import amount
from soperator.cli.support.errors import CliError
from soperator.render.cluster.keys import read_record
from soperator.render.parts.paths import BUNDLE
from soperator.render.parts.sssd import PIPES
from soperator.slurm.keys import rotated

Json = Mapping[str, Any]
#: The volumes of a pod that are only for SSH from outside.
_SSH_VOLUMES, _SSH_SETTING = ("hostkeys", "ssh"), "SOPERATOR_SSH"
#: The folder in which Slurm's commands expect sackd's socket.
_SOCKETS = "/run/slurm"
#: Folders below this one are readable for everybody in the container, those above it only for root.
_STATE = "/var/lib/soperator"


@dataclass(frozen=True)
class ReferencePod:
    """A container of a pod, and the content of its volumes: `files` by volume, name and content. `domain` is the domain of the pods' host names."""

    container: Json
    volumes: Sequence[Json]
    files: Mapping[str, Mapping[str, bytes]]
    domain: str


@dataclass(frozen=True)
class Host:
    """The host to create: a Slurm node of this name, or a login host if `node` is empty; `claims` maps a claim's name to the path on the host."""

    cluster: str
    node: str
    claims: Mapping[str, str]

    @property
    def folder(self) -> str:
        """The folder of its files on the host."""
        return f"/etc/soperator/{self.cluster}"

    @property
    def name(self) -> str:
        """The name of its container."""
        return f"soperator-{self.cluster}"


def for_host(annotations: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a Secret for a host.

    At the stage Known they are those of Signing: every daemon accepts the new key, so the host needs only one change.
    """
    record = read_record(annotations)
    if record.stage != "Known" or "slurm.jwks" not in files:
        return dict(files)
    return {**files, **rotated(files, replace(record, stage="Signing"), b"")}


def script(host: Host, like: ReferencePod) -> str:
    """Return the script for /bin/sh, to be run by root. It contains the cluster's key. Raises CliError."""
    said = _environment(like.container)
    if said.get("SOPERATOR_AUTH") != "slurm":
        raise CliError(
            "spec.auth.type of the cluster is munge: hosts outside Kubernetes join a cluster with auth.type slurm"
        )
    controller = said["SOPERATOR_CONTROLLER"].rpartition(":")[0]
    first = f"{controller}-0.{like.domain}"
    role = f"Slurm node {host.node}" if host.node else "a login host"
    lines = [
        "#!/bin/sh",
        f"# This host becomes {role} of cluster {host.cluster}. This script contains the cluster's key: keep it secret.",
        "set -eu",
        'fail() { echo "soperator: $*" >&2; exit 1; }',
        '[ "$(id -u)" = 0 ] || fail "root is to run this"',
        'run=${RUNTIME:-$(command -v podman || command -v docker)} || fail "install podman or docker"',
        _needs(f"getent ahosts {shlex.quote(first)}", _UNNAMED.format(name=first)),
        *(_needs(f"[ -d {shlex.quote(path)} ]", f"mount {path} first") for path in host.claims.values()),
        *_files(host, like),
        f"$run rm -f {host.name} {host.name}-names >/dev/null 2>&1 || true",
        *_names(host, like, controller),
        *([] if host.node else _bundle(like)),
        f"$run run --detach --restart always --name {host.name} {shlex.join(_options(host, like))} ${{OPTIONS:-}} {_program(like)}",
        f'echo "{role[0].upper()}{role[1:]} of {host.cluster}: $run logs {host.name}"',
    ]
    return "\n".join(lines) + "\n"


_UNNAMED = "{name} does not resolve: let this host use the DNS of Kubernetes, and reach the pods"


def _needs(test: str, why: str) -> str:
    return f"{test} >/dev/null || fail {shlex.quote(why)}"


def _files(host: Host, like: ReferencePod) -> Iterator[str]:
    """Yield the commands that write the content of Secrets and ConfigMaps, readable only by root, as in a pod."""
    yield f"umask 077; rm -rf {host.folder}"
    for volume in _volumes(like):
        if found := like.files.get(volume["name"]):
            yield f"mkdir -p {host.folder}/{volume['name']}"
            for name, content in sorted(found.items()):
                yield f"base64 -d >{host.folder}/{volume['name']}/{shlex.quote(name)} <<'END'"
                yield base64.encodebytes(content).decode().rstrip("\n")
                yield "END"
    owner = _owner(like)
    yield f"umask 022; chown -R {owner} {host.folder}; install -d -m 0700 {_STATE}"
    for volume in _volumes(like):
        kind, path = _source(host, volume, owner)
        if kind == "made":
            yield f"install -d -m {'0755' if owner else '0777'} -o {owner} {path}"
        if path == _SOCKETS:
            yield f"if [ -d /etc/tmpfiles.d ]; then echo 'd {path} 0755 {owner} root' >/etc/tmpfiles.d/soperator.conf; fi"


def _names(host: Host, like: ReferencePod, controller: str) -> Iterator[str]:
    """Yield the commands that start the container for the host names, and wait until the names are there."""
    said = {"SOPERATOR_NAMES": controller, "SOPERATOR_DOMAIN": like.domain}
    words = ["--network", "host", "--volume", "/etc/hosts:/etc/hosts", *_settings(said)]
    yield (
        f"$run run --detach --restart always --name {host.name}-names {shlex.join(words)} ${{OPTIONS:-}} "
        f"{shlex.quote(like.container['image'])} names"
    )
    yield f"until getent hosts {shlex.quote(controller)} >/dev/null; do sleep 1; done"


def _bundle(like: ReferencePod) -> Iterator[str]:
    """Yield the commands that install Slurm's commands and their libraries, as in the jail, and create the user that slurm.conf names."""
    image, owner = shlex.quote(like.container["image"]), _owner(like)
    yield f"id slurm >/dev/null 2>&1 || useradd --system --no-create-home --uid {owner} --shell /usr/sbin/nologin slurm"
    yield _needs(f'[ "$(id -u slurm)" = {owner} ]', f"the user slurm of this host must have the uid {owner}")
    yield f"made=$($run create {image} names); rm -rf {BUNDLE}; $run cp $made:{BUNDLE} {BUNDLE}; $run rm $made >/dev/null"


def _options(host: Host, like: ReferencePod) -> list[str]:
    """Return the options for the rights and the namespaces of the container, as those of the pod."""
    security = like.container.get("securityContext", {})
    capabilities = security.get("capabilities", {})
    said = {name: value for name, value in _environment(like.container).items() if name != _SSH_SETTING}
    words = ["--network", "host", "--security-opt", "label=disable", "--security-opt", "apparmor=unconfined"]
    words += [word for each in capabilities.get("drop", ()) for word in ("--cap-drop", each)]
    words += [word for each in capabilities.get("add", ()) for word in ("--cap-add", each)]
    words += ["--read-only"] if security.get("readOnlyRootFilesystem") else []
    words += ["--privileged"] if security.get("privileged") else []
    words += ["--user", f"{security['runAsUser']}:{security['runAsGroup']}"] if security.get("runAsUser") else []
    words += _settings(said | ({"SOPERATOR_NODE_NAME": host.node} if host.node else {}))
    return [*words, "--volume", "/etc/hosts:/etc/hosts:ro", *_mounts(host, like)]


def _settings(said: Mapping[str, str]) -> list[str]:
    return [word for name, value in said.items() for word in ("--env", f"{name}={value}")]


def _environment(container: Json) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container.get("env", ())}


def _program(like: ReferencePod) -> str:
    return shlex.join([like.container["image"], *like.container.get("args", ())])


def _volumes(like: ReferencePod) -> list[Json]:
    """Return the options for the volumes that the container mounts, without those of SSH."""
    mounted = {each["name"] for each in like.container.get("volumeMounts", ())} - {*_SSH_VOLUMES}
    return [each for each in like.volumes if each["name"] in mounted]


def _mounts(host: Host, like: ReferencePod) -> list[str]:
    volumes = {each["name"]: each for each in _volumes(like)}
    words: list[str] = []
    for mount in like.container.get("volumeMounts", ()):
        volume = volumes.get(mount["name"])
        if volume is None:
            continue
        kind, source = _source(host, volume, _owner(like))
        if kind == "memory":
            words += ["--tmpfs", f"{mount['mountPath']}:rw,exec,mode=0777{source}"]
            continue
        path = f"{source}/{mount['subPath']}" if mount.get("subPath") else source
        words += ["--volume", f"{path}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'},rslave"]
    return words


def _owner(like: ReferencePod) -> int:
    return int(like.container.get("securityContext", {}).get("runAsUser", 0))


def _source(host: Host, volume: Json, owner: int) -> tuple[str, str]:
    """Return the replacement of a volume on the host: memory with its options, or a path that is created, filled or exists already.

    Memory belongs to root in podman, so a container with another owner gets a folder. Users of a directory come from the host's own SSSD.
    """
    name = volume["name"]
    match volume:
        case {"configMap": _} | {"secret": _} | {"projected": _}:
            return "filled", f"{host.folder}/{name}"
        case {"emptyDir": _} if name == "sssd":
            return "there", PIPES
        case {"emptyDir": {"medium": "Memory", **more}} if not owner:
            size = more.get("sizeLimit")
            return "memory", f",size={int(amount(str(size)))}" if size else ""
        case {"emptyDir": _}:
            return "made", _SOCKETS if name == "slurm" else f"{_STATE}/{host.cluster}/{name}"
        case {"hostPath": {"path": path}}:
            return "there", str(path)
        case {"persistentVolumeClaim": {"claimName": claim}}:
            if path := host.claims.get(claim):
                return "there", path
            raise CliError(
                f"--claim: the pods mount claim {claim}: give its path on this host, as --claim {claim}=/PATH"
            )
    kinds = ", ".join(sorted(volume.keys() - {"name"}))
    raise CliError(f"volume {name} of the pods has the type {kinds}, which a host outside Kubernetes cannot have")
