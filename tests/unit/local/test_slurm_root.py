"""The Debian root with Slurm, for tests: made once, and again when its packages change."""

import subprocess
from pathlib import Path

import pytest

from local import slurm_root


def installed(root: Path, packages: tuple[str, ...]) -> None:
    """Write what dpkg says of a root."""
    status = root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True, exist_ok=True)
    blocks = [f"Package: {each}\nEssential: yes\nStatus: install ok installed\nVersion: 1\n" for each in packages]
    status.write_text("\n".join([*blocks, "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"]))


def test_what_a_root_lacks_is_read_from_dpkg(tmp_path: Path) -> None:
    """Nothing, a package, or all where there is no root."""
    assert slurm_root.missing(tmp_path) == list(slurm_root.PACKAGES)
    installed(tmp_path, slurm_root.PACKAGES[1:])
    assert slurm_root.missing(tmp_path) == [slurm_root.PACKAGES[0]]
    installed(tmp_path, slurm_root.PACKAGES)
    assert slurm_root.missing(tmp_path) == []


def test_a_root_is_made_where_it_lacks_anything_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one goes when the new one is whole."""
    asked: list[list[str]] = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(argv)
        installed(Path(argv[5]), slurm_root.PACKAGES)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(slurm_root.subprocess, "run", run)
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    root = tmp_path / "cache/root"
    installed(root, ("gcc",))
    slurm_root.make(root)
    slurm_root.make(root)
    assert [each[:3] for each in asked] == [["mmdebstrap", "--quiet", "--variant=minbase"]]
    assert slurm_root.missing(root) == []
    assert not root.with_name("root.partial").exists()


def test_an_archive_that_fails_leaves_the_old_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what mmdebstrap said is told."""
    failed = subprocess.CompletedProcess[str]([], 25, stderr="E: no archive")
    monkeypatch.setattr(slurm_root.subprocess, "run", lambda *_, **__: failed)
    installed(tmp_path / "root", ("gcc",))
    with pytest.raises(slurm_root.Failure, match="E: no archive"):
        slurm_root.make(tmp_path / "root")
    assert slurm_root.missing(tmp_path / "root")
