"""Selects the Kubernetes cluster of a program: from KUBECONFIG, the Pod's service account, or ~/.kube/config.

lightkube reads one file. kubectl merges the files in KUBECONFIG, so this module does too: the first file that names a context, a cluster, a user or
the current context wins, and a file that does not exist is skipped.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from soperator.kube.errors import KubeError

#: Names the context to use instead of the current one; `soperator --context` sets it.
CONTEXT = "SOPERATOR_CONTEXT"
_DEFAULT = Path("~/.kube/config")
_SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
#: Fields that name files, relative to the kubeconfig that has them.
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class NoCluster(KubeError):  # noqa: N818  (as in errors.py: an error is named for what happened)
    """No kubeconfig names a cluster; the message has the file and the remedy."""


def configuration(environment: Mapping[str, str] = os.environ) -> SingleConfig:
    """Return the cluster, the user and the namespace for the connection. Raises NoCluster."""
    files = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    context = environment.get(CONTEXT) or None
    if not files and context is None:
        try:
            return _chosen(KubeConfig.from_service_account(), None, "the Pod's service account")
        except ConfigError:
            pass
    return _from_files(files or [_DEFAULT], context)


def _from_files(files: Sequence[Path], context: str | None) -> SingleConfig:
    there = [path for each in files if (path := each.expanduser()).is_file()]
    names = os.pathsep.join(map(str, files))
    if not there:
        raise NoCluster(f"kubeconfig {names}: no such file; set KUBECONFIG, or give --kubeconfig FILE")
    try:
        merged = KubeConfig.from_dict(_merged([(path, _read(path)) for path in there]), fname=there[0])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NoCluster(f"kubeconfig {names}: it is no kubeconfig: {error}") from None
    return _chosen(merged, context, f"kubeconfig {names}")


def _chosen(config: KubeConfig, context: str | None, where: str) -> SingleConfig:
    """Return the requested context, otherwise the current one."""
    name = context or config.current_context
    if not name:
        raise NoCluster(f"{where}: current-context is empty; run `kubectl config use-context NAME`, or give --context")
    if name not in config.contexts:
        known = ", ".join(sorted(config.contexts)) or "none"
        raise NoCluster(f"{where}: there is no context {name!r}; the contexts are: {known}")
    wanted = config.contexts[name]
    if wanted.cluster not in config.clusters:
        raise NoCluster(f"{where}: context {name!r} names the cluster {wanted.cluster!r}, which is not defined")
    if wanted.user and wanted.user not in config.users:
        raise NoCluster(f"{where}: context {name!r} names the user {wanted.user!r}, which is not defined")
    found = config.get(name)
    assert found is not None
    return found


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise NoCluster(f"kubeconfig {path}: it cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise NoCluster(f"kubeconfig {path}: it is not a kubeconfig: its top level is not a mapping")
    return found


def _merged(files: Sequence[tuple[Path, Mapping[str, Any]]]) -> dict[str, Any]:
    """One kubeconfig out of several files; for each name the first file that has it wins."""
    merged: dict[str, Any] = {"current-context": next((t for _, f in files if (t := f.get("current-context"))), None)}
    for section, part in _SECTIONS.items():
        found: dict[str, Any] = {}
        for path, content in files:
            for each in content.get(section) or ():
                found.setdefault(each["name"], {"name": each["name"], part: _absolute(each.get(part) or {}, path)})
        merged[section] = list(found.values())
    return merged


def _absolute(fields: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields, with relative paths of files resolved against the kubeconfig's own folder."""
    return {
        key: str(path.parent.absolute() / value) if key in _PATHS and isinstance(value, str) else value
        for key, value in fields.items()
    }
