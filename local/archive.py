"""Writes a container image without any tool: a docker-archive is a tar of a layer's tar, a configuration and a manifest.

The same input gives the same bytes (no clock, sorted names), so an image's digest changes only with its content.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """One file of an image."""

    content: bytes
    mode: int = 0o644


def _tar(files: Mapping[str, File]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(files[name].content), files[name].mode
            tar.addfile(entry, io.BytesIO(files[name].content))
    return buffer.getvalue()


def docker_archive(to: Path, tag: str, files: Mapping[str, File], entrypoint: list[str]) -> None:
    """Write an image with one layer that contains ``files`` (path → file) and runs ``entrypoint``."""
    layer = _tar(files)
    diff_id = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }
    text = json.dumps(config, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [tag], "Layers": ["layer.tar"]}]
    parts = {
        config_name: File(text),
        "layer.tar": File(layer),
        "manifest.json": File(json.dumps(manifest).encode()),
    }
    partial = to.with_suffix(".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(_tar(parts))
    partial.rename(to)


def identity(archive: Path) -> dict[str, str]:
    """Return a map from tag to the name of the configuration (its digest) for every image in a docker-archive."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile("manifest.json")
        if member is None:
            raise ValueError(f"{archive}: manifest.json is not a file")
        entries = json.load(member)
    return {tag: str(entry["Config"]) for entry in entries for tag in entry["RepoTags"] or ()}
