"""What every verb has in common, as somebody meets it who has just installed the program."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from soperator import __version__

ROOT = Path(__file__).parents[3]
NEEDS_A_CLUSTER = [
    ["why", "demo"],
    ["why", "demo", "7"],
    ["diff", str(ROOT / "examples/cluster.yaml")],
    ["token", "alice", "--cluster", "demo"],
    ["join", "demo", "--nodeset", "worker", "--node", "worker-9"],
    ["explain", "jail", "demo"],
    ["status", "demo"],
    ["status", "--all-namespaces"],
    ["jobs", "demo"],
    ["top", "demo"],
    ["logs", "controller", "demo"],
    ["ssh", "demo"],
    ["drain", "worker-0", "--reason", "x"],
    ["resume", "worker-0"],
    ["bundle", "demo", "-o", "/nonexistent/demo.tar.gz"],
    ["preflight"],
    ["operator", "--no-lease"],
]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program with these words; nothing of this machine's own kubeconfig is there."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src"), **environment}
    command = [sys.executable, "-m", "soperator.cli", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", NEEDS_A_CLUSTER, ids=" ".join)
def test_without_a_kubeconfig_a_verb_says_so_in_one_line(words: list[str]) -> None:
    """The line names the file and the remedy, and the exit code is not 0."""
    ended = run(*words, KUBECONFIG="/nonexistent/config")
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr + ended.stdout
    assert ended.stderr.splitlines()[-1].startswith("kubeconfig /nonexistent/config: no such file; set KUBECONFIG")


def test_the_image_starts_it_without_tracebacks_too() -> None:
    """The program in the operator's image ends with the same one line."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "KUBECONFIG": "/nonexistent/config"}
    command = [sys.executable, str(ROOT / "images/operator/soperator"), "operator", "--no-lease"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1].startswith("kubeconfig /nonexistent/config: no such file")
    assert "Traceback" not in ended.stderr


def test_the_version_is_printed() -> None:
    """`soperator --version` prints the name and the version."""
    assert run("--version").stdout == f"soperator {__version__}\n"


@pytest.mark.slow
def test_the_wheel_has_all_its_files_and_lints_an_example(tmp_path: Path) -> None:
    """A wheel that pip builds has every file of src/soperator, and works without the repository."""
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(words, check=True, capture_output=True, timeout=240)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
        names = set(packed.namelist())
    wanted = subprocess.run(["git", "ls-files", "src/soperator"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {each.removeprefix("src/") for each in wanted.stdout.split()} <= names
    ended = run("lint", str(ROOT / "examples/cluster.yaml"), PYTHONPATH=str(tmp_path / "installed"))
    assert ended.returncode == 0, ended.stderr
