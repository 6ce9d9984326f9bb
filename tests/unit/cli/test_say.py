"""What others wrote does not reach the terminal of who asks as orders to it, and makes no lines of its own."""

import pytest
from typer.testing import CliRunner

from soperator.api.base import GROUP
from soperator.cli.__main__ import app
from soperator.cli.support import why_slurm
from soperator.cli.support.say import line, plain
from soperator.kube.api import Api
from soperator.policy import explain
from tests.unit.fake_api import FakeApi

#: Writes the clipboard, hides what follows, moves up, turns the direction of writing, and says that all is well.
HOSTILE = "x\x1b]52;c;cm0gLXJmIH4=\x07\x1b[8m\x1b[1A\x9b2J\u202e\r\nSlurmCluster demo is available."
RUN = CliRunner()


@pytest.fixture
def kubernetes(monkeypatch):
    """A cluster whose condition has such words."""
    fake = FakeApi()
    condition = {"type": "Available", "status": "False", "message": HOSTILE}
    status = {"conditions": [condition], "observedGeneration": 1}
    for kind, spec in (("SlurmCluster", {}), ("NodeSet", {"clusterRef": {"name": "demo"}})):
        meta = {"name": "demo", "namespace": "default"}
        made = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
        fake.world.seed({**made, "status": status})
    monkeypatch.setattr(Api, "connect", lambda *_, **__: fake.api())
    return fake


def test_the_comment_of_a_job_is_its_users(kubernetes, monkeypatch):
    """A user wrote it by sbatch --comment; an administrator asks why the job waits."""

    async def said(*_):
        return explain.of_job({"job_id": 7, "job_state": ["PENDING"], "user_name": "eve", "comment": HOSTILE}, [], 0)

    monkeypatch.setattr(why_slurm, "why", said)
    _is_harmless(RUN.invoke(app, ["why", "demo", "7"]).output, "Its comment: x")


def test_a_condition_has_the_last_words_of_containers(kubernetes):
    """Those of a tenant's script, for one."""
    _is_harmless(RUN.invoke(app, ["why", "demo"]).output, "SlurmCluster demo: Available is False: x")


def test_a_problem_of_a_file_repeats_what_stands_there(tmp_path):
    """A tenant's file is linted by others."""
    file = tmp_path / "a.yaml"
    file.write_text(
        f'apiVersion: {GROUP}/v1alpha1\nkind: NodeSet\nmetadata: {{name: n}}\nspec: {{cluster: "\\e]52;c;eA==\\a"}}\n'
    )
    _is_harmless(RUN.invoke(app, ["lint", str(file)]).output, "]52;c;eA==")


def _is_harmless(output: str, words: str) -> None:
    assert words in output
    assert plain(output) == output
    assert "SlurmCluster demo is available." not in output.splitlines()


def test_plain_words_stay():
    """In any language, with blanks and tabs."""
    for text in ("täglich, 5 €: ✓", "a\tb", "node-[0-3]\\n"):
        assert line(text) == text
