"""The cluster's cgroups, made and removed in a tree that looks like the kernel's."""

from pathlib import Path

from local import cgroups


def version_1(root: Path) -> Path:
    """Return a tree like version 1's: a hierarchy per controller, and one folder that is none."""
    for name in ("cpuset", "memory"):
        (root / name).mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
    (root / "not-a-hierarchy").mkdir()
    return root


def test_hierarchies(tmp_path: Path) -> None:
    """Version 1 has a hierarchy per controller; version 2 is one."""
    assert [folder.name for folder in cgroups.hierarchies(version_1(tmp_path / "v1"))] == ["cpuset", "memory"]
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / "cgroup.controllers").write_text("cpu memory")
    assert cgroups.hierarchies(tmp_path / "v2") == [tmp_path / "v2"]


def test_made_and_removed(tmp_path: Path) -> None:
    """A Node's cgroup is made in every hierarchy, twice without harm, and goes with what kubelets made below it."""
    root = version_1(tmp_path)
    cgroups.make("/soperator/node-1", root)
    cgroups.make("/soperator/node-1", root)
    (root / "memory/soperator/node-1/kubepods/pod-1").mkdir(parents=True)
    assert (root / "cpuset/soperator/node-1").is_dir()
    cgroups.remove(root=root)
    assert not (root / "cpuset/soperator").exists()
    assert not (root / "memory/soperator").exists()
    cgroups.remove(root=root)


def test_version_2_hands_controllers_down(tmp_path: Path) -> None:
    """With version 2, children may use every controller that the root has."""
    (tmp_path / "cgroup.controllers").write_text("memory")
    (tmp_path / "cgroup.subtree_control").touch()
    cgroups.make("soperator/node-1", tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
    assert (tmp_path / "soperator/node-1").is_dir()


def test_programs_enter_before_they_start(tmp_path: Path) -> None:
    """A program joins its cgroup in every hierarchy before it becomes itself, and its arguments arrive unchanged."""
    import subprocess

    root = version_1(tmp_path)
    cgroups.make(cgroups.PROGRAMS, root)
    done = subprocess.run(
        cgroups.entering(["sh", "-c", 'echo $$ "$1"', "x", "two words"], root),
        capture_output=True,
        text=True,
        check=True,
    )
    pid, _, rest = done.stdout.strip().partition(" ")
    assert rest == "two words"
    assert (root / "memory" / cgroups.PROGRAMS / "cgroup.procs").read_text().strip() == pid
