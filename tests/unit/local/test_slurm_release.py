"""Which Slurm images and roots have: a release by name, or a folder of packages that were built elsewhere."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from local import images, slurm_release, slurm_root
from local.images import RECIPES, image_of
from local.progress import Failure


def package(folder: Path, name: str, version: str) -> None:
    """A Debian package with nothing in it."""
    tree = folder / "trees" / name
    (tree / "DEBIAN").mkdir(parents=True)
    described = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Us <us@localhost>\n"
    (tree / "DEBIAN/control").write_text(f"{described}Description: for a test\n")
    done = subprocess.run(
        ["dpkg-deb", "-Znone", "--build", tree, folder / f"{name}.deb"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that is needed of 26.05, named in the environment with its release."""
    for name in slurm_release.NEEDED:
        package(tmp_path / "given", name, "26.05.7-1ours1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SLURM_PACKAGES", str(tmp_path / "given"))
    monkeypatch.setenv("SLURM_RELEASE", "26.05")
    return tmp_path / "given"


def tags(name: str) -> tuple[str, ...]:
    """The tags of an image as the environment is now."""
    return image_of(next(each for each in RECIPES if each.name == name)).tags


def test_the_environment_names_the_release_of_images_that_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image slurm is another one with another release; slurm-2411 and slurm-2605 are always of theirs, and others have none."""
    monkeypatch.delenv("SLURM_PACKAGES", raising=False)
    seen = {}
    for release in slurm_release.RELEASES:
        monkeypatch.setenv("SLURM_RELEASE", release)
        seen[release] = {name: tags(name) for name in ("slurm", "slurm-2411", "slurm-2605", "jail")}
    assert seen["24.11"]["slurm"] != seen["26.05"]["slurm"]
    assert {**seen["24.11"], "slurm": ()} == {**seen["26.05"], "slurm": ()}
    monkeypatch.delenv("SLURM_RELEASE")
    assert tags("slurm") == seen[slurm_release.DEFAULT]["slurm"]


def test_a_release_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With those that are; and the command says it in one line."""
    monkeypatch.setenv("SLURM_RELEASE", "23.02")
    with pytest.raises(Failure, match=r"SLURM_RELEASE=23\.02: there is 24\.11 and 26\.05"):
        slurm_release.chosen()
    with pytest.raises(SystemExit, match=r"SLURM_RELEASE=23\.02: there is"):
        images.main(["list", "slurm"])


def test_each_release_has_its_own_root_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the one of the images' Debian is where it always was."""
    assert slurm_root.place("slurm", "24.11").name == "trixie-slurm"
    assert slurm_root.place("rest", "26.05").name == "trixie-rest-26.05"


def test_packages_built_elsewhere_become_an_archive_by_their_content(packages: Path) -> None:
    """With an index that apt reads; other content is another archive, and another image."""
    folder, before = slurm_release.prebuilt("26.05"), tags("slurm")
    assert folder is not None
    index = (folder / "Packages").read_text()
    assert sorted(path.name for path in folder.glob("*.deb")) == sorted(f"{each}.deb" for each in slurm_release.NEEDED)
    assert index.count("Version: 26.05.7-1ours1\n") == index.count("SHA256: ") == len(slurm_release.NEEDED)
    assert slurm_release.volumes("26.05") == [f"{folder}:/packages:ro"]
    assert slurm_release.arguments("26.05") == [
        "SLURM_RELEASE=26.05",
        "SLURM_SUITE=forky",
        f"SLURM_PACKAGES={folder.name}",
    ]
    package(packages, "libpmi2-0t64", "26.05.7-1ours1")
    assert slurm_release.prebuilt("26.05") != folder
    assert tags("slurm") != before


def test_the_other_release_is_of_debians_packages(packages: Path) -> None:
    """What is in the folder is of the release that is chosen."""
    assert slurm_release.prebuilt("24.11") is None
    assert slurm_release.volumes("24.11") == []


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ("lost", "there is no package slurmd$"),
        ("old", "slurmd is 24.11.5-4; SLURM_RELEASE asks for 26.05"),
        ("longer", "slurmd is 26.050-1; SLURM_RELEASE asks for 26.05"),
        ("broken", "slurmd.deb is no Debian package: "),
    ],
)
def test_packages_that_cannot_be_used_are_named(packages: Path, spoilt: str, said: str) -> None:
    """Which one, what it is and what was asked for."""
    (packages / "slurmd.deb").unlink()
    if spoilt == "broken":
        (packages / "slurmd.deb").write_text("no package")
    elif spoilt != "lost":
        subprocess.run(["rm", "-r", packages / "trees/slurmd"], check=True)
        package(packages, "slurmd", "24.11.5-4" if spoilt == "old" else "26.050-1")
    with pytest.raises(Failure, match=said):
        slurm_release.prebuilt("26.05")


@pytest.mark.parametrize(
    ("spec", "is_patch", "lines"),
    [
        ({"login": {}}, False, "PrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": {"slurm": "# ours\nA=1\n"}}}, False, "# ours\nA=1\nPrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": {"slurm": "A=1"}}}, True, "A=1\nPrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": {"slurm": "PrologFlags=Contain\nMpiDefault=none"}}}, True, "PrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": {"slurm": None}}}, True, "PrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": None}}, True, "PrologFlags=Contain\nMpiDefault=none"),
        ({"config": None}, True, "PrologFlags=Contain\nMpiDefault=none"),
        ({"config": {"extraLines": {"gres": None}}}, True, None),
        ({"config": {"prolog": "x"}}, True, None),
        ({"login": {}}, True, None),
    ],
)  # fmt: skip
def test_a_cluster_of_26_05_has_the_settings_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], is_patch: bool, lines: str | None
) -> None:
    """Behind its own lines, whose numbers stay; a patch of other fields is not touched, and neither is anything of 24.11."""
    monkeypatch.setenv("SLURM_RELEASE", "26.05")
    made = slurm_release.with_settings(spec, is_patch)
    if lines is None:
        assert made == spec
    else:
        assert made["config"]["extraLines"]["slurm"] == lines
        assert {**made, "config": ""} == {**spec, "config": ""}
    monkeypatch.setenv("SLURM_RELEASE", "24.11")
    assert slurm_release.with_settings(spec, is_patch) == spec
