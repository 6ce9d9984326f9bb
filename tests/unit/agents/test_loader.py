"""The jail's loader finds each node's GPU driver through one link."""

import subprocess
from pathlib import Path

import pytest

from soperator.agents.loader import LIBRARIES, link_driver


@pytest.mark.parametrize("folder", ["usr/lib/x86_64-linux-gnu", "usr/lib64", "lib64"])
def test_the_link_lies_beside_the_c_library(tmp_path: Path, folder: str) -> None:
    """Wherever the distribution has it; a second time finds it there."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "libc.so.6").touch()
    for _ in range(2):
        assert link_driver(tmp_path) == tmp_path / folder / "glibc-hwcaps/x86-64-v2"
    assert str((tmp_path / folder / "glibc-hwcaps/x86-64-v2").readlink()) == LIBRARIES


def test_a_folder_of_a_package_stays(tmp_path: Path) -> None:
    """The link takes the next level of the CPU, and none where all are taken."""
    hwcaps = tmp_path / "usr/lib64/glibc-hwcaps"
    (hwcaps / "x86-64-v2").mkdir(parents=True)
    (tmp_path / "usr/lib64/libc.so.6").touch()
    assert link_driver(tmp_path) == hwcaps / "x86-64-v3"
    (hwcaps / "x86-64-v4").mkdir()
    (hwcaps / "x86-64-v3").unlink()
    (hwcaps / "x86-64-v3").mkdir()
    assert link_driver(tmp_path) is None


def test_a_link_of_the_image_is_not_followed(tmp_path: Path) -> None:
    """Of two names of one folder the real one is used, and an absolute link leads nowhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/libc.so.6").touch()
    root = tmp_path / "root"
    (root / "usr/lib64").mkdir(parents=True)
    (root / "lib64").symlink_to("usr/lib64")
    (root / "usr/lib").symlink_to(tmp_path / "outside")
    assert link_driver(root) is None
    assert not (tmp_path / "outside/glibc-hwcaps").exists()


PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) { void *it = dlopen("libplantest.so.1", RTLD_NOW); return it ? puts(*(const char **)dlsym(it, "who")) < 0 : 3; }
"""
SHELL = """
set -e
mount -t tmpfs none /opt && mkdir -p {libraries} upper work
mount -t overlay none -o lowerdir={folder},upperdir=$PWD/upper,workdir=$PWD/work {folder}
mkdir -p {folder}/glibc-hwcaps && ln -s {libraries} {folder}/glibc-hwcaps/x86-64-v2
./program || echo none
for driver in one two; do mount --bind $driver {libraries}; env -i ./program; umount {libraries}; done
"""


def test_the_loader_of_this_machine_finds_what_is_mounted(tmp_path: Path) -> None:
    """A library that only the driver's folder has is found without LD_LIBRARY_PATH; another node's driver is another library."""
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
    for driver in ("one", "two"):
        (tmp_path / driver).mkdir()
        (tmp_path / "it.c").write_text(f'const char *who = "{driver}";\n')
        made = tmp_path / driver / "libplantest.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, tmp_path / "it.c"], check=True)
    script = SHELL.format(libraries=LIBRARIES, folder="/usr/lib/x86_64-linux-gnu")
    words = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.splitlines() == ["none", "one", "two"], done.stderr
