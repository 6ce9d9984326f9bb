"""The plan's parser, through `jail explain`."""

import subprocess
from pathlib import Path

import pytest
from conftest import Build
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = "root\t/mnt/jail/root\t/\t-\tthe root\n"
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def explain(build: Build, folder: Path, text: str | bytes) -> subprocess.CompletedProcess[str]:
    plan = folder / "plan"
    plan.write_bytes(text.encode() if isinstance(text, str) else text)
    return subprocess.run(
        [build.jail, "explain", "--plan", str(plan)], check=False, capture_output=True, text=True, errors="replace"
    )


BAD = {
    "": "holds no mount, not even the root",
    "# only a comment\n\n": "holds no mount, not even the root",
    ROOT + "foo\t-\t/tmp\t-\t-\n": 'line 2: unknown kind "foo"',
    "tmpfs\t-\t/tmp\t-\t-\n": 'line 1: the first mount has to be kind "root" on "/"',
    "root\t/a\t/b\t-\t-\n": 'line 1: the first mount has to be kind "root" on "/"',
    ROOT + ROOT: "line 2: only the first mount can be the root",
    ROOT + "tmpfs\t-\t/\t-\t-\n": "line 2: only the first mount can be the root",
    ROOT + "tmpfs\t-\t/tmp\t-\n": "line 2: has 4 fields, not 5 separated by tabs",
    ROOT + "tmpfs - /tmp - -\n": "line 2: has 1 fields, not 5 separated by tabs",
    ROOT + "tmpfs\t-\t/tmp\t-\t-\tmore\n": "line 2: has 6 fields, not 5 separated by tabs",
    ROOT + "tmpfs\t-\ttmp\t-\t-\n": 'line 2: target "tmp" is not absolute',
    ROOT + "tmpfs\t-\t/a/../b\t-\t-\n": 'line 2: target "/a/../b" contains ".."',
    ROOT + "tmpfs\t-\t/a/.\t-\t-\n": 'line 2: target "/a/." contains "."',
    ROOT + "tmpfs\t-\t/a//b\t-\t-\n": 'line 2: target "/a//b" has an empty part',
    ROOT + "tmpfs\t-\t/a/\t-\t-\n": 'line 2: target "/a/" has an empty part',
    ROOT + "bind\t-\t/a\t-\t-\n": 'line 2: source "" is not absolute',
    ROOT + "bind\t/b/..\t/a\t-\t-\n": 'line 2: source "/b/.." contains ".."',
    ROOT + "tmpfs\t/x\t/a\t-\t-\n": 'line 2: kind "tmpfs" takes no source, but has "/x"',
    ROOT + "proc\t/sys\t/proc\t-\t-\n": 'line 2: kind "proc" takes no source, but has "/sys"',
    ROOT + "tmpfs\t-\t/a\trw\t-\n": 'line 2: option "rw" does not fit kind "tmpfs"',
    ROOT + "tmpfs\t-\t/a\tro,\t-\n": 'line 2: option "" does not fit kind "tmpfs"',
    ROOT + "tmpfs\t-\t/a\tsize=1x\t-\n": 'line 2: option "size=1x" does not fit kind "tmpfs"',
    ROOT + "tmpfs\t-\t/a\towner=a\t-\n": 'line 2: option "owner=a" does not fit kind "tmpfs"',
    ROOT + "scratch\t/s\t/a\towner=../a\t-\n": 'line 2: option "owner=../a" does not fit kind "scratch"',
    ROOT + "scratch\t/s\t/a\towner=\t-\n": 'line 2: option "owner=" does not fit kind "scratch"',
    ROOT + "tmpfs\t-\t/a\tmode=9\t-\n": 'line 2: option "mode=9" does not fit kind "tmpfs"',
    ROOT + "bind\t/a\t/a\tsize=1m\t-\n": 'line 2: option "size=1m" does not fit kind "bind"',
    ROOT + "path\t-\t/a\t-\t-\n": 'line 2: "" is no name of a variable',
    ROOT + "path\t1A\t/a\t-\t-\n": 'line 2: "1A" is no name of a variable',
    ROOT + "path\tA=B\t/a\t-\t-\n": 'line 2: "A=B" is no name of a variable',
    ROOT + "path\tPATH\t/a:b\t-\t-\n": 'line 2: target "/a:b" contains ":"',
    ROOT + "path\tPATH\t/a\tro\t-\n": 'line 2: option "ro" does not fit kind "path"',
    ROOT + "bind\t/a\t/a\tlast\t-\n": 'line 2: option "last" does not fit kind "bind"',
    ROOT + "sys\t-\t/sys\tunmasked\t-\n": 'line 2: option "unmasked" does not fit kind "sys"',
    "root\t/a\t/\toptional\t-\n": 'line 1: option "optional" does not fit kind "root"',
    ROOT + "tmpfs\t-\t/a\t-\t-\n# x\ntmpfs\t-\t/a\t-\t-\n": 'line 4: target "/a" is already taken by line 2',
    ROOT + "tmpfs\t-\t/a\x00\t-\t-\n": "contains a NUL byte",
    ROOT + "tmpfs\t-\t/" + "a" * 5000 + "\t-\t-\n": "is too long",
    ROOT + "".join(f"tmpfs\t-\t/a{n}\t-\t-\n" for n in range(256)): "line 257: more than 256 mounts",
    ROOT + "#" * 300_000: "is larger than 262144 bytes",
}


@pytest.mark.parametrize("text", BAD, ids=BAD.values())
def test_a_bad_plan_is_refused_in_words(build: Build, tmp_path: Path, text: str) -> None:
    """An invalid plan ends with one message that names file, line and words."""
    done = explain(build, tmp_path, text)
    assert done.returncode == 71
    assert done.stderr.startswith(f"plan {tmp_path}/plan")
    assert BAD[text] in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_plan_is_refused_in_words(build: Build) -> None:
    """A missing plan ends with one message that names it."""
    done = subprocess.run([build.jail, "explain", "--plan", "/not/there"], check=False, capture_output=True, text=True)
    assert done.stderr == "plan /not/there: cannot be read: No such file or directory\n"


def test_a_good_plan_is_explained(build: Build, tmp_path: Path) -> None:
    """`jail explain` prints every kind and option in the plan's order, with its reason."""
    text = ROOT + (
        "bind\t/etc/hosts\t/etc/hosts\tro,optional\tnames\n\n# skipped\n"
        "rbind\t/opt/x\t/opt/x\tnosuid,nodev,noexec\t-\n"
        "tmpfs\t-\t/tmp\tsize=64m,mode=1777\tprivate\nproc\t/proc\t/proc\tunmasked\t-\n"
        "dev\t-\t/dev\tminimal,size=1g\t-\nsys\t/sys\t/sys\tro\t-\n"
        "scratch\t/s\t/scratch\tmode=700,owner=demo.12-3\t-"
    )
    done = explain(build, tmp_path, text)
    assert done.stderr == ""
    assert done.stdout.splitlines()[:8] == [
        "root  / <- /mnt/jail/root  # the root",
        "bind  /etc/hosts <- /etc/hosts ro optional  # names",
        "rbind /opt/x <- /opt/x nosuid nodev noexec",
        "tmpfs /tmp <- new memory file system size=64m mode=1777  # private",
        "proc  /proc <- new proc, unmasked",
        "dev   /dev <- new device folder, basic nodes size=1g",
        "sys   /sys <- the pod's /sys ro",
        "scratch /scratch <- a folder of each job, below its source, in one of this node mode=700 owner=demo.12-3",
    ]


@FUZZ
@given(st.binary(max_size=400))
def test_any_bytes_end_in_words(build: Build, tmp_path: Path, text: bytes) -> None:
    """The parser accepts any file or prints why not, and no sanitizer reports an error."""
    done = explain(build, tmp_path, text)
    assert done.returncode in (0, 71)
    assert done.returncode == 0 or done.stderr.startswith("plan ")


WORDS = st.sampled_from(
    [
        "root",
        "bind",
        "tmpfs",
        "proc",
        "dev",
        "-",
        "/",
        "/a",
        "/a/..",
        "//",
        "ro",
        "ro,,",
        "size=",
        "size=9",
        "mode=777",
        "",
        "x",
    ]
)


@FUZZ
@given(st.lists(st.lists(WORDS, max_size=6).map("\t".join), max_size=6).map("\n".join))
def test_near_plans_end_in_words(build: Build, tmp_path: Path, text: str) -> None:
    """Lines made of the format's own words are accepted or refused, and an accepted plan begins with the root."""
    done = explain(build, tmp_path, text)
    assert done.returncode in (0, 71)
    assert done.stdout.startswith("root  / <- ") if done.returncode == 0 else done.stderr.startswith("plan ")


@pytest.mark.parametrize("words", ["", "dance", "run", "run --plan", "run --plan /p", "enter --pid x -- true", "check"])
def test_wrong_words_get_the_usage(build: Build, words: str) -> None:
    """An invalid command line ends with code 64 and the usage."""
    done = subprocess.run([build.jail, *words.split()], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0][:10]) == (64, "usage: jai")
