"""The container helper with arbitrary arguments: the result is one error message or a container, never a memory error (ASan and UBSan)."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SANITIZE, SPANK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JOB = f"tests-{os.getpid()}"
STEPS = itertools.count()
NAMES = [
    "image",
    "mounts",
    "workdir",
    "name",
    "save",
    "env",
    "unshare",
    "mount-home",
    "no-container-remap-root",
    "entrypoint",
    "readonly",
]
WORDS = st.text(alphabet="ab/.:,+=@#-_ %$\n\x7fé", max_size=40) | st.sampled_from(
    [
        "/a:/b:ro+nosuid",
        "tmpfs:/t:size=1m+mode=700",
        "umount:/a",
        "x:auto",
        "host:5000#a/b:c",
        "u@host#a",
        "docker://a",
        "a@sha256:0",
        "./nowhere",
        "a" * 5000,
        ",".join(["/a:/b"] * 300),
    ]
)


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the helper in a sanitizer build, alone in its folder: without skopeo it never downloads an image."""
    folder = tmp_path_factory.mktemp("container")
    make = [
        "make",
        "-s",
        "-C",
        str(SPANK / "container"),
        f"BUILD={folder}",
        f"CFLAGS={SANITIZE}",
        str(folder / "container"),
    ]
    subprocess.run(make, check=True)
    yield folder / "container"
    shutil.rmtree(f"/tmp/.containers-{os.geteuid()}/{JOB}", ignore_errors=True)


def run(helper: Path, home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `container run` with the arguments."""
    env = {"HOME": str(home), "PATH": "", "ASAN_OPTIONS": "detect_leaks=0", "LANG": "C"}
    storage = f"--storage={home}"
    return subprocess.run(
        [str(helper), "run", storage, f"--job={JOB}", f"--step={next(STEPS)}", *words, "--", "true"],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        env=env,
        timeout=20,
        cwd=home,
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.tuples(st.sampled_from(NAMES), WORDS | st.none()), min_size=1, max_size=4))
def test_any_words_end_in_one_sentence(helper: Path, tmp_path: Path, words: list[tuple[str, str | None]]) -> None:
    """With any arguments, the helper exits with 1 or 2, and prints one message of its own or the usage."""
    options = [
        f"--container-{name}".replace("--container-no-", "--no-") + ("" if value is None else f"={value}")
        for name, value in words
    ]
    done = run(helper, tmp_path, *(each.replace("\0", "") for each in options))
    assert done.returncode in (1, 2), done.stderr
    assert "Sanitizer" not in done.stderr, done.stderr
    assert "runtime error" not in done.stderr, done.stderr
    assert done.stderr.startswith("container"), done.stderr


@pytest.mark.parametrize(
    ("image", "reference"),
    {
        "ubuntu": "docker://docker.io/ubuntu",
        "ubuntu:24.04": "docker://docker.io/ubuntu:24.04",
        "team/image:1": "docker://docker.io/team/image:1",
        "nvcr.io/nvidia/pytorch:24.05-py3": "docker://nvcr.io/nvidia/pytorch:24.05-py3",
        "nvcr.io#nvidia/pytorch:24.05-py3": "docker://nvcr.io/nvidia/pytorch:24.05-py3",
        "me@nvcr.io#nvidia/pytorch:1": "docker://nvcr.io/nvidia/pytorch:1",
        "docker://host:5000#a/b": "docker://host:5000/a/b",
        "host:5000/a/b:c": "docker://host:5000/a/b:c",
        "localhost/a:c": "docker://localhost/a:c",
        "oci:folder:tag": "oci:folder:tag",
    }.items(),
)
def test_the_forms_of_an_image(helper: Path, tmp_path: Path, image: str, reference: str) -> None:
    """enroot's form and docker's form mean the same; if the first part is not a host, the image is on Docker Hub."""
    done = run(helper, tmp_path, f"--container-image={image}")
    assert (
        done.stderr == f"container: cannot find the image {reference}: cannot start skopeo: No such file or directory\n"
    )


def test_folders_of_others_are_refused(helper: Path, tmp_path: Path) -> None:
    """If another user has created the user's folder, or all may write in it, the helper reads nothing from it."""
    folder = tmp_path / str(os.geteuid())
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    (tmp_path / "image").write_bytes(b"hsqs")
    done = run(helper, tmp_path, "--container-image=./image")
    assert done.stderr == f"container: {folder} is not a folder of yours that others cannot write to\n"
