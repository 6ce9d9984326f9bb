"""The jail is filled once, whole or not at all, whatever kills the Job in between."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soperator.agents import populate
from soperator.agents.errors import Refusal
from soperator.agents.populate import PopulateRequest, complete, seal

REPOSITORY = Path(__file__).parents[3]
COPY = REPOSITORY / "images/agents/copy.sh"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Make a small root with what is hard to copy: links, modes, odd names, what must stay behind."""
    root = tmp_path / "image"
    for folder in ("etc", "usr/bin", "proc/1", "run/lock", "tmp", "soperator", "home/a b"):
        (root / folder).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh")
    (root / "etc/hosts").write_text("127.0.0.1 builder")
    (root / "etc/resolv.conf").symlink_to("/run/systemd/resolve/stub-resolv.conf")
    (root / "proc/1/status").write_text("kernel")
    (root / "run/lock/x").write_text("lock")
    (root / "home/a b/odd\nname").write_text("odd")
    for number in range(200):
        (root / f"usr/bin/p{number}").write_text(f"program {number}\n")
    (root / "usr/bin/hard").hardlink_to(root / "usr/bin/p0")
    (root / "usr/bin/soft").symlink_to("p0")
    (root / "usr/bin/p1").chmod(0o4755)
    return root


def copy(claim: Path, image: Path) -> subprocess.CompletedProcess[str]:
    """Run copy.sh to its end."""
    return subprocess.run(["sh", COPY, claim, image], capture_output=True, text=True, check=False)


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return every regular file with mode and content."""
    found = {}
    for folder, _, files in os.walk(root):
        for name in files:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(root))] = (path.stat().st_mode, path.read_bytes())
    return found


def populated(claim: Path, image: Path) -> Path:
    """Copy and seal."""
    claim.mkdir(exist_ok=True)
    done = copy(claim, image)
    assert done.returncode == 0, done.stderr
    seal(claim, PopulateRequest("localhost/jail:1"))
    return claim / "root"


def test_a_whole_jail_is_recorded(tmp_path: Path, image: Path) -> None:
    """The jail holds the image's files, its mount points, links and accounts, and the record says what it is."""
    root = populated(tmp_path / "claim", image)
    assert (root / "usr/bin/p1").stat().st_mode & 0o7777 == 0o4755
    assert (root / "usr/bin/hard").stat().st_ino == (root / "usr/bin/p0").stat().st_ino
    assert (root / "usr/bin/soft").readlink() == Path("p0")
    assert not list((root / "proc").iterdir())
    assert (root / "etc/hosts").read_text() == ""
    assert (root / "etc/resolv.conf").is_file()
    assert (root / "usr/local/bin/srun").readlink() == Path("/opt/soperator/bin/srun")
    assert (root / "etc/passwd").read_text().splitlines()[1].startswith("slurm:x:64030:64030:")
    record = json.loads((tmp_path / "claim/.soperator/populated.json").read_text())
    assert record["image"] == "localhost/jail:1"
    assert record["files"] == 203
    assert sorted(each.name for each in (tmp_path / "claim/.soperator").iterdir()) == ["lock", "populated.json"]


def test_a_second_run_touches_nothing(tmp_path: Path, image: Path) -> None:
    """A complete jail is left alone, with what users changed in it."""
    root = populated(tmp_path / "claim", image)
    (root / "usr/bin/p0").write_text("changed by a user")
    assert copy(tmp_path / "claim", image).returncode == 0
    assert seal(tmp_path / "claim", PopulateRequest("other")) == f"{root} is complete already."
    assert (root / "usr/bin/p0").read_text() == "changed by a user"


def test_a_jail_of_unknown_origin_is_refused(tmp_path: Path, image: Path) -> None:
    """Files that no populate Job made are never written over, and the sentence says what to do."""
    (tmp_path / "claim/root").mkdir(parents=True)
    (tmp_path / "claim/root/precious").write_text("data")
    done = copy(tmp_path / "claim", image)
    assert done.returncode == 65
    assert "holds files that no populate Job sealed" in done.stderr
    assert sorted(each.name for each in (tmp_path / "claim").iterdir()) == [".soperator", "root"]


@pytest.mark.parametrize("harm", ["missing", "short", "content"])
def test_a_copy_that_differs_is_refused_and_made_anew(tmp_path: Path, image: Path, harm: str) -> None:
    """A lost, a cut and a changed file are each noticed; the next run starts over and succeeds."""
    claim = tmp_path / "claim"
    claim.mkdir()
    assert copy(claim, image).returncode == 0
    sums = (claim / ".soperator/sums").read_text().splitlines()
    checked = next(line.split("  ")[1] for line in sums if "usr/bin" in line)
    victim = claim / "root.partial" / checked
    if harm == "missing":
        victim.unlink()
    else:
        victim.write_bytes(b"" if harm == "short" else b"?" * victim.stat().st_size)
    with pytest.raises(Refusal, match="differs from the image"):
        seal(claim, PopulateRequest())
    assert not (claim / "root").exists()
    assert content(populated(claim, image)).items() >= {checked: content(image)[checked]}.items()


def test_a_root_that_appeared_beside_a_whole_copy_is_not_touched(tmp_path: Path, image: Path) -> None:
    """Somebody put files there after copy.sh had looked: without a request the sentence says so, and no later run fares better."""
    claim = tmp_path / "claim"
    claim.mkdir()
    assert copy(claim, image).returncode == 0
    (claim / "root").mkdir()
    (claim / "root/precious").write_text("data")
    with pytest.raises(Refusal, match="exists and is not empty; it stays unchanged") as refused:
        seal(claim, PopulateRequest())
    assert refused.value.final
    assert (claim / "root/precious").read_text() == "data"


@pytest.mark.parametrize(("size", "said"), [(2, "has 2 bytes instead of 3"), (4, "has 4 bytes instead of 3")])
def test_a_file_of_another_size_is_a_difference_without_its_sum(tmp_path: Path, size: int, said: str) -> None:
    """Names that sha256sum escapes are compared by their size alone."""
    (tmp_path / "odd").write_bytes(b"x" * size)
    assert list(populate.differences(tmp_path, [populate.Entry("odd", 3)], "")) == [f"odd {said}"]


def test_a_seal_killed_before_the_rename_goes_on(tmp_path: Path, image: Path) -> None:
    """A copy to which the accounts were added already is still the copy that was to be made."""
    claim = tmp_path / "claim"
    claim.mkdir()
    assert copy(claim, image).returncode == 0
    complete(claim / "root.partial")
    assert copy(claim, image).returncode == 0
    assert seal(claim, PopulateRequest()).endswith("203 files, 0 MB.")


def test_seal_without_a_copy_is_refused(tmp_path: Path) -> None:
    """An empty claim cannot be sealed."""
    with pytest.raises(Refusal, match=r"copy\.sh has to run"):
        seal(tmp_path, PopulateRequest())


def test_a_job_killed_after_the_rename_only_writes_the_record(tmp_path: Path, image: Path) -> None:
    """With the jail in its place and no record, both halves of the Job go on to the record."""
    claim = tmp_path / "claim"
    root = populated(claim, image)
    (claim / ".soperator/populated.json").unlink()
    (claim / ".soperator/manifest").write_bytes(b"12 usr/bin/p0\0")
    assert copy(claim, image).returncode == 0
    seal(claim, PopulateRequest())
    assert (root / "usr/bin/p9").exists()
    assert (claim / ".soperator/populated.json").exists()


def wait_for_group(group: int) -> None:
    """Wait until the last process of a killed group is gone: until then it may hold the claim's lock."""
    until = time.monotonic() + 30
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08])
def test_a_job_killed_anywhere_completes_when_run_again(tmp_path: Path, image: Path, delay: float) -> None:
    """Kill the copy, then the seal, after various times; one undisturbed run then gives a complete jail."""
    claim = tmp_path / "claim"
    claim.mkdir()
    for command in (["sh", str(COPY), str(claim), str(image)], [*SEAL, "--claim", str(claim)]):
        with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=ENVIRONMENT) as victim:
            time.sleep(delay if command[0] == "sh" else delay * 4)
            os.killpg(victim.pid, signal.SIGKILL)
        wait_for_group(victim.pid)
    root = populated(claim, image)
    expected = {name: each for name, each in content(image).items() if name.startswith(("usr", "home"))}
    assert content(root).items() >= expected.items()
    assert not (claim / "root.partial").exists()


SEAL = [sys.executable, "-m", "soperator.agents.populate", "seal"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}


def test_an_error_is_one_sentence(tmp_path: Path) -> None:
    """A refusal of the program is a sentence on stderr, not a traceback."""
    done = subprocess.run([*SEAL, "--claim", tmp_path], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stderr == f"soperator: {tmp_path} has no complete copy: copy.sh has to run before seal.\n"


def test_completing_twice_changes_nothing(tmp_path: Path) -> None:
    """Accounts are added once, and a link of the image that leads out is not followed."""
    (tmp_path / "var").mkdir()
    (tmp_path / "var/tmp").symlink_to("/nowhere-soperator")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")
    complete(tmp_path)
    once = content(tmp_path)
    complete(tmp_path)
    assert content(tmp_path) == once
    assert [line.split(":")[0] for line in (tmp_path / "etc/passwd").read_text().splitlines()] == ["sshd", "slurm"]
    assert not Path("/nowhere-soperator").exists()
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == populate.FOLDERS["tmp"]


def test_an_image_without_gnu_tools_is_refused_with_what_it_lacks(tmp_path: Path, image: Path) -> None:
    """busybox' find knows no -printf: the sentence names the tools, and no attempt follows."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "find").write_text("#!/bin/sh\nexit 1\n")
    (tools / "find").chmod(0o755)
    env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    words = ["sh", COPY, tmp_path / "claim", image]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 65
    assert "has no GNU coreutils and findutils" in done.stderr
