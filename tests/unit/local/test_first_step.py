"""The first commands of somebody who works on the code: they need no root where Python is complete, and say what is missing."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def make_venv(tmp_path: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run `make venv` in a folder with the Makefile alone, with a Python that is a script of these lines, as nobody with root."""
    folder = tmp_path / "tree"
    (folder / "requirements").mkdir(parents=True)
    (folder / "requirements/dev.txt").write_text("")
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "python").write_text(f"#!/bin/sh\n{python}\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    for name in ("python", "id"):
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["make", "-s", "-C", str(folder), "venv", f"HOST_PYTHON={tmp_path}/python"]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("exit 1", "cannot make virtual environments: install its package for them"),
        ('case "$2" in *ensurepip*) exit 0 ;; esac; exit 1', "is older than Python 3.11: name a newer one"),
    ],
)
def test_a_python_that_does_not_do_is_named(tmp_path: Path, python: str, sentence: str) -> None:
    """With the remedy, and without apt-get for somebody who is not root."""
    done = make_venv(tmp_path, python)
    assert done.returncode != 0
    assert sentence in done.stderr


def test_the_devcontainer_makes_the_same_environment() -> None:
    """Its commands name a target that exists, and what the Makefile needs."""
    found = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found["postCreateCommand"].removeprefix("make ") in targets
    assert {"git", "make", "python3", "python3-venv"} <= set(found["onCreateCommand"].split())
