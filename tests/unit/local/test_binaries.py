"""Programs are built once for one input, or taken from where they are already."""

from pathlib import Path

import pytest

from local import binaries, golang
from local.progress import Failure


def sources(folder: Path, requirement: str) -> Path:
    """Write a module's files and return their folder."""
    (folder / "etcd").mkdir(parents=True, exist_ok=True)
    (folder / "etcd" / "go.mod").write_text(requirement)
    return folder


def test_key_follows_the_input(tmp_path: Path) -> None:
    """The same modules give the same folder; another version, or another place to take programs from, another."""
    first = binaries.key(sources(tmp_path / "a", "etcd v1"))
    assert binaries.key(sources(tmp_path / "b", "etcd v1")) == first
    assert binaries.key(sources(tmp_path / "b", "etcd v2")) != first
    assert binaries.key(sources(tmp_path / "b", "etcd v1"), taken_from="/opt") != first


def test_every_program_is_built_once() -> None:
    """All programs that a cluster and its users need are built, each by one build."""
    wanted = "kubectl kubeadm kubelet kube-proxy etcd helm kwok coredns runc containerd containerd-shim-runc-v2 ctr"
    assert set(wanted.split()) < set(binaries.PROGRAMS)
    assert len(set(binaries.PROGRAMS)) == len(binaries.PROGRAMS) == 15


def test_runc_has_seccomp() -> None:
    """Runc alone is built with C, for seccomp."""
    runc = next(build for build in binaries.BUILDS if "runc" in build.packages.values())
    command = binaries.command(runc, Path("go"), Path("/into"))
    assert runc.cgo
    assert command[command.index("-tags") + 1] == "seccomp"
    assert command[command.index("-o") + 1] == "/into/runc"
    assert [build.cgo for build in binaries.BUILDS].count(True) == 1


def test_prebuilt_programs_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in $KUBERNETES_BINARIES are used instead of building any, and can be executed."""
    prebuilt = tmp_path / "prebuilt"
    prebuilt.mkdir()
    for program in binaries.PROGRAMS:
        (prebuilt / program).write_text(program)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBERNETES_BINARIES", str(prebuilt))
    made = binaries.make()
    assert (made / "kubectl").read_text() == "kubectl"
    assert (made / "kubectl").stat().st_mode & 0o111
    assert binaries.make() == made


def test_missing_prebuilt_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of prebuilt programs that lacks one is refused by that program's name, and nothing is kept of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBERNETES_BINARIES", str(tmp_path))
    with pytest.raises(Failure, match="kube-apiserver"):
        binaries.make()
    assert not binaries.folder().exists()


@pytest.mark.parametrize(
    ("text", "version"),
    [("go version go1.26.8 linux/amd64", (1, 26, 8)), ("go version go1.27 linux/amd64", (1, 27, 0)), ("no such", None)],
)
def test_version_of_go(text: str, version: tuple[int, int, int] | None) -> None:
    """Go's version is read from what it prints."""
    assert golang.parse_version(text) == version


def test_old_go_is_not_enough(tmp_path: Path) -> None:
    """Debian 12's Go is too old, and a missing one is not an error."""
    for version, is_enough in (("1.19.8", False), ("1.26.7", False), ("1.26.8", True), ("2.0", True)):
        go = tmp_path / f"go{version}"
        go.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
        go.chmod(0o755)
        assert golang.is_new_enough(go) is is_enough
    assert not golang.is_new_enough(tmp_path / "none")


def test_a_build_says_what_fraction_is_done_and_when_it_will_be() -> None:
    """The sentence counts packages, gives the time left once a twentieth is done, and says when only linking is left."""
    assert binaries.progress(40, 2000, 60.0) == "40 of 2000 packages are compiled (2 %)"
    assert binaries.progress(500, 2000, 100.0) == "500 of 2000 packages are compiled (25 %), about 5 min left"
    assert (
        binaries.progress(2001, 2000, 400.0)
        == "2000 of 2000 packages are compiled (100 %), the programs are being linked"
    )
    assert binaries.progress(7, 0, 9.0) == "7 packages are compiled"


def test_only_packages_are_counted() -> None:
    """Downloads, messages of the compiler and headings of packages with errors are no compiled packages."""
    log = (
        "go: downloading k8s.io/api v0.36.3\ninternal/goarch\nk8s.io/api/core/v1\n# k8s.io/x\nx.go:3:4: undefined: y\n"
    )
    assert binaries.compiled(log) == 2
