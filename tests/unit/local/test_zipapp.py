"""The command line as one file, and as a plugin for krew."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from local import zipapp
from soperator import __version__

ROOT = Path(__file__).parents[3]


def run(program: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the file as somebody does who has nothing else of the project."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    command = [sys.executable, str(program), *words]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_one_file_is_the_whole_command_line(tmp_path):
    """It is built, lints an example and prints its version without the repository; under the plugin's name it is the plugin."""
    program = zipapp.build(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    assert run(program, home, "--version").stdout == f"soperator {__version__}\n"
    assert run(program, home, "lint", str(ROOT / "examples/cluster.yaml")).stdout == "2 objects, no problems\n"
    assert run(program, home, "explain", "cluster.login").returncode == 0
    assert run(program, home, "status").stderr.startswith("kubeconfig ~/.kube/config: no such file")
    zipapp.write_plugin(tmp_path, program, "https://example.com/v1")
    with tarfile.open(tmp_path / "kubectl-slurm.tar.gz") as packed:
        for name in ("kubectl-slurm", "LICENSE"):
            packed.extract(name, home)
    assert run(home / "kubectl-slurm", home, "--help").stdout.startswith("Usage: kubectl slurm ")
    assert (home / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_manifest_of_krew_has_the_hash_of_the_archive(tmp_path):
    """And the address under which the release is published."""
    (tmp_path / "soperator.pyz").write_text("#!/bin/sh\n")
    path = zipapp.write_plugin(tmp_path, tmp_path / "soperator.pyz", "https://example.com/v1")
    found = json.loads(path.read_text())
    (platform,) = found["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256((tmp_path / "kubectl-slurm.tar.gz").read_bytes()).hexdigest()
    assert platform["uri"] == "https://example.com/v1/kubectl-slurm.tar.gz"
    assert (found["metadata"]["name"], found["spec"]["version"], platform["bin"]) == (
        "slurm",
        f"v{__version__}",
        "kubectl-slurm",
    )
    with tarfile.open(tmp_path / "kubectl-slurm.tar.gz") as packed:
        assert {each.name: each.mode for each in packed} == {"kubectl-slurm": 0o755, "LICENSE": 0o644}


@pytest.mark.parametrize("made_for", [(2, 7, "x86_64"), (*sys.version_info[:2], "pdp11")])
def test_another_python_says_for_which_the_file_is(tmp_path, made_for):
    """In a sentence with the remedies, before an import fails."""
    (tmp_path / "preamble.py").write_text(zipapp.PREAMBLE.format(made_for=made_for))
    done = subprocess.run([sys.executable, str(tmp_path / "preamble.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"soperator.pyz is for Python {made_for[0]}.{made_for[1]} on {made_for[2]}, and this is Python "
    )
