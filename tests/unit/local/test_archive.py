"""Images written without a tool."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from local.archive import File, docker_archive, identity

FILES = {"/usr/bin/tool": File(b"program", 0o755), "/etc/tool.conf": File(b"setting")}


def written(folder: Path, files: dict[str, File] = FILES) -> Path:
    """Write an archive and return it."""
    archive = folder / "image.tar"
    docker_archive(archive, "localhost/tool:1", files, ["/usr/bin/tool"])
    return archive


def test_digests_hold(tmp_path: Path) -> None:
    """The manifest names a configuration by its digest, and that names the layer by its own."""
    with tarfile.open(written(tmp_path)) as tar:
        parts = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    manifest = json.loads(parts["manifest.json"])[0]
    config = parts[manifest["Config"]]
    assert manifest["RepoTags"] == ["localhost/tool:1"]
    assert manifest["Config"] == hashlib.sha256(config).hexdigest() + ".json"
    assert json.loads(config)["config"]["Entrypoint"] == ["/usr/bin/tool"]
    layer = parts[manifest["Layers"][0]]
    assert json.loads(config)["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]


def test_layer_holds_the_files(tmp_path: Path) -> None:
    """The layer holds every file at its path, with its mode and content, owned by root."""
    with tarfile.open(written(tmp_path)) as outer, tarfile.open(fileobj=outer.extractfile("layer.tar")) as layer:
        found = {
            member.name: (member.mode, member.uid, layer.extractfile(member).read())  # type: ignore[union-attr]
            for member in layer
        }
    assert found == {"usr/bin/tool": (0o755, 0, b"program"), "etc/tool.conf": (0o644, 0, b"setting")}


def test_same_input_same_bytes(tmp_path: Path) -> None:
    """The order in which files are given changes nothing; their content does."""
    first = written(tmp_path).read_bytes()
    assert written(tmp_path, dict(reversed(FILES.items()))).read_bytes() == first
    assert written(tmp_path, FILES | {"/etc/tool.conf": File(b"other")}).read_bytes() != first
    assert [file.name for file in tmp_path.iterdir()] == ["image.tar"]


def test_identity_is_the_configuration(tmp_path: Path) -> None:
    """An archive's identity follows its content, per tag."""
    before = identity(written(tmp_path))
    assert list(before) == ["localhost/tool:1"]
    assert identity(written(tmp_path)) == before
    assert identity(written(tmp_path, {"/x": File(b"")})) != before


def test_identity_of_something_else(tmp_path: Path) -> None:
    """A tar that is no docker-archive is refused."""
    with tarfile.open(tmp_path / "x.tar", "w"):
        pass
    with pytest.raises(KeyError, match=r"manifest\.json"):
        identity(tmp_path / "x.tar")
