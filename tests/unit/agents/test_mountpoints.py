"""What submounts cover is made in the jail, and nothing else is touched there, whatever its users put in the way."""

import os
from pathlib import Path

import pytest

from soperator.agents import mountpoints
from soperator.agents.mountpoints import PodMountPoint, Refusal, make, make_all


@pytest.fixture
def jail(tmp_path: Path) -> Path:
    """A jail with a little in it, and something beside it that no path may reach."""
    for folder in ("jail/home/alice", "jail/usr", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "jail/file").write_text("kept")
    (tmp_path / "jail/home").chmod(0o711)
    return tmp_path / "jail"


def point(jail: Path, path: str) -> PodMountPoint:
    """A mount point of that jail."""
    return PodMountPoint(str(jail), path, f"/{path}")


def test_makes_what_is_missing_and_says_it(jail: Path) -> None:
    """Folders above are made too, open to all; a second run finds nothing to do."""
    wanted = [point(jail, "home"), point(jail, "data/sets"), point(jail, "data")]
    assert make_all(wanted) == "Created /data/sets in the jail."
    assert (jail / "data/sets").stat().st_mode & 0o7777 == 0o755
    assert make_all(wanted) == "The jail has all mount points."


def test_leaves_what_is_there_as_it_is(jail: Path) -> None:
    """An administrator's mode stays."""
    assert not make(point(jail, "home"))
    assert (jail / "home").stat().st_mode & 0o7777 == 0o711


@pytest.mark.parametrize("target", ["../outside", "/etc", "home", "nowhere"])
@pytest.mark.parametrize("path", ["link", "link/data"])
def test_follows_no_link(jail: Path, path: str, target: str) -> None:
    """A link in a path is refused with what it leads to, wherever that is; nothing is made behind it."""
    (jail / "link").symlink_to(target)
    before = sorted(jail.parent.rglob("*"))
    with pytest.raises(Refusal, match=f"is a symbolic link to {target} in the jail: name the path that it leads to"):
        make(point(jail, path))
    assert sorted(jail.parent.rglob("*")) == before


def test_says_everything_that_stands_in_the_way(jail: Path) -> None:
    """Each path is named, with what to do about it, and the others are made nevertheless."""
    (jail / "link").symlink_to("home")
    with pytest.raises(Refusal) as refused:
        make_all(
            [
                point(jail, "file"),
                point(jail, "file/below"),
                point(jail, "good"),
                point(jail, "link/x"),
            ]
        )
    assert str(refused.value).split("; ") == [
        "/file is not a folder in the jail: choose another path, or move the file",
        "file, on the way to /file/below, is not a folder in the jail: choose another path, or move the file",
        "link, on the way to /link/x, is a symbolic link to home in the jail: name the path that it leads to, or remove the link",
    ]
    assert (jail / "good").is_dir()


def test_says_which_folder_of_the_pod_is_not_there(jail: Path) -> None:
    """A claim without a jail in it is told by its path."""
    with pytest.raises(
        Refusal, match="/root, which contains /data of the jail, cannot be opened: No such file or directory"
    ):
        make(PodMountPoint(f"{jail}/root", "data", "/data"))


@pytest.mark.parametrize("to", ["file", "folder"])
def test_a_link_that_took_the_place_of_a_new_folder_is_not_followed(tmp_path, to):
    """A user who swaps the folder between its making and its mode changes no mode of anything else."""
    (tmp_path / "file").touch(0o600)
    (tmp_path / "folder").mkdir(0o700)
    (tmp_path / "new").symlink_to(tmp_path / to)
    before = (tmp_path / to).stat().st_mode
    parent = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError):
        mountpoints.open_to_all(parent, "new")
    os.close(parent)
    assert (tmp_path / to).stat().st_mode == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_folder_of_a_user_keeps_its_mode(tmp_path):
    """It was put there in the place of ours."""
    (tmp_path / "new").mkdir(0o700)
    os.chown(tmp_path / "new", 4711, 4711)
    parent = os.open(tmp_path, os.O_RDONLY)
    mountpoints.open_to_all(parent, "new")
    os.close(parent)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
