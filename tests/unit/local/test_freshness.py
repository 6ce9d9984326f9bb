"""Which packages of the images are outdated, and that a refresh gives every image another name."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from local import freshness, images
from local.images import RECIPES, Image, Recipe, image_of

POLICY = """openssl:
  Installed: 3.5.8-1
  Candidate: 3.5.9-1~deb13u1
  Version table:
     3.5.9-1~deb13u1 500
        500 mirror trixie-security/main amd64 Packages
N: Unable to locate package ours
libc6:
  Installed: (none)
  Candidate: 2.41-12
gone:
  Installed: 1
  Candidate: (none)
"""


def test_what_apt_would_install_is_read_from_its_policy() -> None:
    """A package that the archive does not have has no version there."""
    assert freshness.candidates(POLICY) == {"openssl": "3.5.9-1~deb13u1", "libc6": "2.41-12"}


def test_what_is_newer_in_the_archive_is_told_with_both_versions() -> None:
    """By dpkg's order, in which a tilde comes first; what is newer in the image, or unknown to the archive, is well."""
    has = {"openssl": "3.5.9-1~deb13u1", "libc6": "2.41-12", "slurmd": "26.05.5-1", "ours": "1", "zlib": "1:1.3"}
    offers = {"openssl": "3.5.9-1", "libc6": "2.41-12", "slurmd": "24.11.5-4", "zlib": "1:1.10"}
    assert freshness.outdated("slurm", has, offers) == [
        "slurm: openssl 3.5.9-1~deb13u1: 3.5.9-1",
        "slurm: zlib 1:1.3: 1:1.10",
    ]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A cache in which the image proxy alone is built; what the archive offers for it can be set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offers = {"nginx": "2"}

    def offered(recipe: Recipe, image: Image) -> Mapping[str, str]:
        assert (recipe.name, image.name) == ("proxy", "proxy")
        return offers

    monkeypatch.setattr(freshness, "offered", offered)
    monkeypatch.setattr(freshness, "debian", lambda _: {"nginx": "1"})
    tar = image_of(next(each for each in RECIPES if each.name == "proxy")).tar
    tar.parent.mkdir(parents=True)
    tar.touch()
    return offers


def names() -> dict[str, tuple[str, ...]]:
    """The tags of all images."""
    return {each.name: image_of(each).tags for each in RECIPES}


def test_outdated_says_so_and_changes_nothing(built: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 1 where anything is newer, and with 0 where nothing is."""
    before = names()
    assert freshness.main("outdated", []) == 1
    assert capsys.readouterr().out == "proxy: nginx 1: 2\n"
    built["nginx"] = "1"
    assert freshness.main("outdated", ["proxy"]) == 0
    assert capsys.readouterr().out == "1 images are built, and the archive has nothing newer\n"
    assert names() == before


def test_a_refresh_names_every_image_anew_where_anything_is_newer(built: dict[str, str]) -> None:
    """Otherwise none: it can run every night."""
    before = names()
    built["nginx"] = "1"
    assert freshness.main("refresh", []) == 0
    assert names() == before
    built["nginx"] = "2"
    assert freshness.main("refresh", []) == 0
    assert images.packages_since() > images.PACKAGES_SINCE
    assert [name for name, tags in names().items() if tags == before[name]] == []


def test_a_day_of_the_source_that_is_later_than_the_note_counts(
    built: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that was moved on since is not held back by an old cache."""
    freshness.main("refresh", [])
    monkeypatch.setattr(images, "PACKAGES_SINCE", "2999-01-01")
    assert images.packages_since() == "2999-01-01"
