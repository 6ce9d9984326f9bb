"""The script that gathers a node's GPU driver, run in a mount namespace of its own."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "images/slurm/driver"
SETUP = """
set -euo pipefail
complain() { echo "soperator: $*" >&2; exit 1; }
mount -t tmpfs none /run
. "$1"
"""


def run(commands: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What the script does between these commands, as root of a user namespace."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", SETUP + commands, "bash", str(SCRIPT)]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)


def library(folder: Path, name: str, soname: str) -> Path:
    """A shared library with a soname."""
    folder.mkdir(parents=True, exist_ok=True)
    source, made = folder / "it.c", folder / name
    source.write_text("int it;\n")
    subprocess.run(["gcc", "-shared", "-o", made, source, f"-Wl,-soname,{soname}"], check=True)
    return made


def test_a_list_is_bound_and_linked_by_soname(tmp_path: Path) -> None:
    """Each file under its name, links as listed, and the name by which programs ask for a library."""
    made = library(tmp_path / "root/lib", "libcuda.so.550", "libcuda.so.1")
    (tmp_path / "files").write_text(f"lib\tlibcuda.so.550\t{made}\nlink\tlibcuda.so\tlibcuda.so.1\n")
    done = run("gather_driver files; cd /run/driver/lib; ls; cmp libcuda.so " + str(made), tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["libcuda.so", "libcuda.so.1", "libcuda.so.550"]), done.stderr
    assert done.stderr == "soperator: GPU driver: 1 files\n"


def test_what_the_runtime_mounted_is_found(tmp_path: Path) -> None:
    """Libraries and programs that are mounts of their own; the rest of their folders is not."""
    made = library(tmp_path, "libnvidia-ml.so.550", "libnvidia-ml.so.1")
    place = """
        mkdir -p /run/pod/lib64 /run/pod/bin; touch /run/pod/lib64/lib{nvidia-ml.so.550,other.so.1} /run/pod/bin/{nvidia-smi,other}
        mount --bind libnvidia-ml.so.550 /run/pod/lib64/libnvidia-ml.so.550; mount --bind it.c /run/pod/bin/nvidia-smi
        gather_driver runtime; ls /run/driver/*"""
    done = run(place, tmp_path)
    assert done.stdout.split() == [
        "/run/driver/bin:", "nvidia-smi", "/run/driver/lib:", "libnvidia-ml.so.1", made.name,
    ], done.stderr  # fmt: skip


def test_a_file_that_cannot_be_bound_is_named(tmp_path: Path) -> None:
    """The pod ends with the sentence."""
    (tmp_path / "files").write_text("lib\tlibcuda.so.1\t/nonexistent/libcuda.so.1\n")
    done = run("gather_driver files", tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("soperator: Cannot bind /nonexistent/libcuda.so.1 of the GPU driver.\n")
