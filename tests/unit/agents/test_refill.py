"""A sealed jail is replaced or mended only upon a request, keeps what it is to keep, and survives a kill at any step."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from soperator.agents.errors import Refusal
from soperator.agents.populate import PopulateRequest, main, seal

REPOSITORY = Path(__file__).parents[3]
COPY = REPOSITORY / "images/agents/copy.sh"
KEEP = ("/home", "/srv/data", "/not/there")
OVERWRITE, MISSING = PopulateRequest("image:2", "r2", "Overwrite", KEEP), PopulateRequest("image:2", "r2", "Missing")


def run_copy(claim: Path, image: Path, wanted: PopulateRequest) -> subprocess.CompletedProcess[str]:
    """Run copy.sh as the Job does."""
    said = {
        "SOPERATOR_JAIL_IMAGE": wanted.image,
        "SOPERATOR_REQUEST": wanted.request,
        "SOPERATOR_MODE": wanted.mode,
    }
    return subprocess.run(
        ["sh", COPY, claim, image], capture_output=True, text=True, check=False, env=os.environ | said
    )


def job(claim: Path, image: Path, wanted: PopulateRequest) -> str:
    """Both halves of the Job."""
    done = run_copy(claim, image, wanted)
    assert done.returncode == 0, done.stderr
    return seal(claim, wanted)


def root_of(path: Path, program: str) -> Path:
    """A small image."""
    for folder in ("etc", "usr/bin", "home", "srv"):
        (path / folder).mkdir(parents=True)
    (path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (path / "etc/group").write_text("root:x:0:\n")
    (path / "usr/bin/tool").write_text(program)
    (path / "usr/bin/other").write_text("other")
    (path / "bin").symlink_to("usr/bin")
    return path


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    """A jail of the first image in which people have worked."""
    claim = tmp_path / "claim"
    claim.mkdir()
    job(claim, root_of(tmp_path / "one", "first"), PopulateRequest("image:1"))
    root = claim / "root"
    (root / "home/alice").mkdir()
    (root / "home/alice/notes").write_text("hers")
    (root / "srv/data").mkdir()
    (root / "srv/data/set").write_text("kept")
    (root / "etc/passwd").write_text((root / "etc/passwd").read_text() + "alice:x:1000:1000::/home/alice:/bin/sh\n")
    (root / "usr/bin/installed").write_text("by apt")
    return claim


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """The second image."""
    return root_of(tmp_path / "two", "second")


def assert_overwritten(claim: Path) -> None:
    """The jail is the second image with what was kept, and the record says so."""
    root = claim / "root"
    assert (root / "usr/bin/tool").read_text() == "second"
    assert (root / "home/alice/notes").read_text() == "hers"
    assert (root / "srv/data/set").read_text() == "kept"
    assert "alice:x:1000" in (root / "etc/passwd").read_text()
    assert not (root / "usr/bin/installed").exists()
    assert (root / "usr/local/bin/srun").is_symlink()
    assert (claim / "root.previous/usr/bin/installed").read_text() == "by apt"
    record = json.loads((claim / ".soperator/populated.json").read_text())
    assert (record["image"], record["request"]) == ("image:2", "r2")
    assert sorted(each.name for each in claim.iterdir()) == [".soperator", "root", "root.previous"]
    assert sorted(each.name for each in (claim / ".soperator").iterdir()) == ["lock", "populated.json"]


def test_an_overwrite_replaces_the_image_and_keeps_people_and_the_listed_paths(claim: Path, second: Path) -> None:
    """Homes, listed paths and accounts stay; all else is the new image; the former root is kept beside it."""
    assert job(claim, second, OVERWRITE).endswith(f"kept /home, /srv/data; the previous root is {claim}/root.previous.")
    assert_overwritten(claim)


def test_a_request_is_carried_out_once(claim: Path, second: Path) -> None:
    """The same request again, or none, touches nothing, whatever changed since."""
    job(claim, second, OVERWRITE)
    (claim / "root/usr/bin/tool").write_text("changed since")
    for wanted in (OVERWRITE, PopulateRequest("image:3"), MISSING):
        assert job(claim, second, wanted).endswith("is complete already.")
    assert (claim / "root/usr/bin/tool").read_text() == "changed since"


def test_gaps_are_filled_and_nothing_else_changes(claim: Path, second: Path) -> None:
    """A deleted program, folder and link come back from the image; what is there stays as it is, and so does its origin."""
    root = claim / "root"
    (root / "usr/bin/other").unlink()
    (root / "bin").unlink()
    shutil.rmtree(root / "var")
    (root / "etc/group").unlink()
    assert job(claim, second, MISSING) == f"4 missing paths of {root} were restored."
    assert (root / "bin/other").read_text() == "other"
    assert (root / "var/spool/slurmd").is_dir()
    assert (root / "usr/bin/tool").read_text() == "first"
    assert (root / "usr/bin/installed").exists()
    assert json.loads((claim / ".soperator/populated.json").read_text())["image"] == "image:1"
    assert sorted(each.name for each in claim.iterdir()) == [".soperator", "root"]


def test_a_root_of_unknown_origin_is_replaced_only_by_an_overwrite(tmp_path: Path, second: Path) -> None:
    """Filling gaps in files that nobody of ours made is refused; an overwrite was asked for, and keeps what it is to keep."""
    claim = tmp_path / "foreign"
    (claim / "root/home/bob").mkdir(parents=True)
    (claim / "root/precious").write_text("data")
    assert run_copy(claim, second, MISSING).returncode == 65
    job(claim, second, OVERWRITE)
    assert (claim / "root/home/bob").is_dir()
    assert (claim / "root.previous/precious").read_text() == "data"


@pytest.mark.parametrize("path", ["/home", "/srv/data"])
def test_a_kept_path_that_is_a_link_is_refused_before_anything_moves(claim: Path, second: Path, path: str) -> None:
    """The jail's users may put links anywhere: none is followed, and the jail stays as it was."""
    real = claim / "root" / path.strip("/")
    real.rename(real.with_name("elsewhere"))
    real.symlink_to("elsewhere")
    before = sorted((claim / "root").iterdir())
    assert run_copy(claim, second, OVERWRITE).returncode == 0
    with pytest.raises(Refusal, match="symbolic link") as refused:
        seal(claim, OVERWRITE)
    assert refused.value.final
    assert sorted((claim / "root").iterdir()) == before


def test_a_link_on_the_way_to_a_kept_path_leads_nowhere(claim: Path, second: Path) -> None:
    """A folder above a kept path that is a link out of the jail is refused, and nothing outside is touched."""
    outside = claim.parent / "outside"
    (outside / "data").mkdir(parents=True)
    shutil.rmtree(claim / "root/srv")
    (claim / "root/srv").symlink_to(outside)
    assert run_copy(claim, second, OVERWRITE).returncode == 0
    with pytest.raises(Refusal, match="/srv/data cannot be kept"):
        seal(claim, OVERWRITE)
    assert (outside / "data").is_dir()
    assert (claim / "root/usr/bin/tool").read_text() == "first"


@pytest.mark.parametrize("name", ["passwd", "group", "shadow"])
def test_a_list_of_users_that_is_a_link_is_not_read(claim: Path, second: Path, name: str) -> None:
    """Root of the jail may let its /etc/passwd lead to any file of the pod: none of it gets into the new jail."""
    secret = claim.parent / "secret"
    secret.write_text("stolen:x:1234:1234::/home/stolen:/bin/sh\n")
    listed = claim / "root/etc" / name
    listed.unlink(missing_ok=True)
    listed.symlink_to(secret)
    job(claim, second, OVERWRITE)
    assert "stolen" not in "".join(each.read_text() for each in (claim / "root/etc").iterdir() if each.is_file())


def test_a_path_that_cannot_be_renamed_gives_the_former_jail_back(claim: Path, second: Path) -> None:
    """If a rename fails half-way, what was moved goes back, and the next request can begin anew."""
    assert run_copy(claim, second, OVERWRITE).returncode == 0
    code = die_or_refuse(claim, OVERWRITE, "refuse", "/data")
    assert code == 65
    root = claim / "root"
    assert (root / "home/alice/notes").read_text() == "hers"
    assert (root / "srv/data/set").read_text() == "kept"
    assert (root / "usr/bin/installed").exists()
    assert not (claim / ".soperator/moving").exists()
    job(claim, second, OVERWRITE)
    assert_overwritten(claim)


def die_or_refuse(claim: Path, wanted: PopulateRequest, how: str, what: str) -> int:
    """Run seal in a process that ends at the n-th change of a name (`die`), or is refused the renames of one path; return its exit code."""
    words = ["seal", "--claim", str(claim), "--image", wanted.image, "--request", wanted.request, "--mode", wanted.mode]
    words += [word for path in wanted.keep for word in ("--keep", path)]
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code: object = 70
    try:
        _watch(how, what)
        sys.argv[1:] = words
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        os._exit(code if isinstance(code, int) else 70)


def _watch(how: str, what: str) -> None:
    """Let this process, which is to end soon, die or be refused as said."""
    seen = 0

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "os.mkdir"):
            return
        if how == "refuse" and event == "os.rename" and str(args[0]) == what.strip("/"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        seen += 1
        if how == "die" and seen == int(what):
            os._exit(99)

    sys.addaudithook(hook)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [OVERWRITE, MISSING], ids=["overwrite", "missing"])
def test_a_job_killed_at_any_change_of_a_name_goes_on_from_there(
    claim: Path, second: Path, wanted: PopulateRequest
) -> None:
    """Whatever the last rename or removal was, nothing that is to be kept is lost, and the next run ends as it should."""
    (claim / "root/usr/bin/other").unlink()
    assert run_copy(claim, second, wanted).returncode == 0
    steps, code, stride = 0, 99, 1 if wanted is OVERWRITE else 4
    while code == 99:
        steps += stride
        copy = claim.with_name(f"killed-{steps}")
        shutil.copytree(claim, copy, symlinks=True)
        code = die_or_refuse(copy, wanted, "die", str(steps))
        notes = [each for each in copy.glob("root*/home/alice/notes") if each.read_text() == "hers"]
        assert len(notes) == 1, f"after step {steps}"
        job(copy, second, wanted)
        if wanted is OVERWRITE:
            assert_overwritten(copy)
        assert (copy / "root/usr/bin/other").exists()
        shutil.rmtree(copy)
    assert code == 0
    assert steps > (15 if wanted is OVERWRITE else 8)


@pytest.mark.slow
def test_a_withdrawn_overwrite_is_finished_before_anything_else(claim: Path, second: Path) -> None:
    """A Job that finds another's journal completes it, says so, and leaves its own request to the next run."""
    assert run_copy(claim, second, OVERWRITE).returncode == 0
    whole = claim.with_name("whole")
    shutil.copytree(claim, whole, symlinks=True)
    for steps in range(1, 60):
        shutil.rmtree(claim)
        shutil.copytree(whole, claim, symlinks=True)
        die_or_refuse(claim, OVERWRITE, "die", str(steps))
        if (claim / ".soperator/moving").exists() and not (claim / "root/home").exists():
            break
    newer = PopulateRequest("image:2", "r3", "Overwrite", KEEP)
    with pytest.raises(Refusal, match="the next run carries out r3"):
        job(claim, second, newer)
    assert_overwritten(claim)
    job(claim, second, newer)
    assert (claim / "root/home/alice/notes").read_text() == "hers"


@pytest.mark.parametrize("program", ["copy.sh", "seal"])
def test_a_word_that_comes_back_is_not_carried_out_again(claim: Path, second: Path, program: str) -> None:
    """As by `git revert` or `helm rollback` past a repair: what was installed since the overwrite stays."""
    job(claim, second, OVERWRITE)
    (claim / "root/usr/bin/since").write_text("by apt")
    for word in ("repair-1", "repair-2"):
        job(claim, second, PopulateRequest("image:2", word, "Missing"))
    if program == "copy.sh":
        assert run_copy(claim, second, OVERWRITE).returncode == 0
        assert not (claim / "root.partial").exists()
        assert (claim / "root.previous").exists()
    assert seal(claim, OVERWRITE) == f"{claim}/root is complete already."
    assert (claim / "root/usr/bin/since").exists()
    job(claim, second, PopulateRequest("image:2", "r3", "Overwrite", KEEP))
    assert not (claim / "root/usr/bin/since").exists()


def test_two_jobs_do_not_work_on_one_claim(claim: Path, second: Path) -> None:
    """While one holds the lock the other one is refused, and may try again."""
    with subprocess.Popen(["flock", claim / ".soperator/lock", "sleep", "20"]) as holder:
        while subprocess.run(["flock", "-n", claim / ".soperator/lock", "true"], check=False).returncode == 0:
            pass
        done = run_copy(claim, second, OVERWRITE)
        holder.kill()
    assert done.returncode == 1
    assert "Another populate Job is at work" in done.stderr


def test_a_full_claim_is_told_with_the_tools_words_and_what_is_free(tmp_path: Path, second: Path) -> None:
    """The sentence names the file that did not fit, and how much room there is."""
    claim = tmp_path / "small"
    claim.mkdir()
    (second / "usr/bin/large").write_bytes(b"x" * (2 << 20))
    mounted = f"mount -t tmpfs -o size=1m small {claim} && sh {COPY} {claim} {second}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", mounted], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "are free on the claim" in done.stderr
