"""The command line in a shell and in kubectl: completion, and the plugin under its own name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.shell import kubectl
from soperator.cli.shell.completion import cluster_names
from soperator.kube.api import Api
from soperator.kube.kubeconfig import NoCluster
from tests.unit.cli.test_status import seeded
from tests.unit.fake_api import FakeApi

ROOT = Path(__file__).parents[3]
RUN = CliRunner()


def started_as(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program from a file of this name, as pip would install it."""
    program = f"import sys; sys.argv[0] = '/usr/bin/{name}'; from soperator.cli.__main__ import main; main()"
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src"), **environment}
    return subprocess.run(
        [sys.executable, "-c", program, *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell):
    """It calls the program with the variable that makes it answer."""
    done = RUN.invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert f"_SOPERATOR_COMPLETE=complete_{shell}" in done.output


def test_bash_completes_verbs_options_and_roles(tmp_path):
    """With the script that is printed, in a real bash."""
    (tmp_path / "soperator").write_text(f'#!/bin/sh\nexec {sys.executable} -m soperator.cli "$@"\n')
    (tmp_path / "soperator").chmod(0o755)
    words = """eval "$(soperator completion bash)"
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _soperator_completion soperator; echo "${COMPREPLY[@]}"; }
complete_words soperator sta
complete_words soperator logs con
complete_words soperator status --out
"""
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["bash", "--norc", "-c", words], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines() == ["status", "controller", "--output"], done.stderr


def test_names_of_clusters_come_from_kubernetes(monkeypatch):
    """Those of the kubeconfig's namespace, or else of all."""
    fake = seeded()
    monkeypatch.setattr(Api, "connect", lambda *_, **__: fake.api())
    assert cluster_names("d") == ["demo"]
    assert cluster_names("x") == []


@pytest.mark.parametrize("fault", ["down", "none"])
def test_a_completion_that_fails_is_silent(monkeypatch, fault):
    """No kubeconfig and no answer are no names, and no sentence in the middle of a line."""

    def connect(*_, **__):
        if fault == "none":
            raise NoCluster("no kubeconfig")
        return FakeApi(down=True).api()

    monkeypatch.setattr(Api, "connect", connect)
    assert cluster_names("") == []


def test_the_plugin_of_kubectl_has_its_own_name():
    """`kubectl slurm --help` says what to type, and errors name the same remedies."""
    assert started_as("kubectl-slurm", "--help").stdout.startswith("Usage: kubectl slurm [OPTIONS] COMMAND")
    assert started_as("soperator", "--help").stdout.startswith("Usage: soperator [OPTIONS] COMMAND")
    assert "no such file" in started_as("kubectl-slurm", "status", KUBECONFIG="/nonexistent").stderr


def test_kubectl_completes_the_plugin():
    """Names, a line each, and the directive that no files are meant."""
    assert started_as("kubectl_complete-slurm", "sta").stdout.splitlines() == ["status", ":4"]
    assert started_as("kubectl_complete-slurm", "logs", "con").stdout.splitlines() == ["controller", ":4"]
    assert "bundle" in started_as("kubectl_complete-slurm", "").stdout.splitlines()
    assert kubectl.as_bash_asks(["why", "a b"])["COMP_WORDS"] == "soperator why 'a b'"
