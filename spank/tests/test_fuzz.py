"""Runs each parser of foreign input on random input for a short time; `make -C spank fuzz` runs each for FUZZ_SECONDS=600 (spank/fuzz)."""

import os
import subprocess
from pathlib import Path

import pytest
from pods import SPANK

FUZZ = SPANK / "fuzz"
READERS = sorted(folder.name for folder in (FUZZ / "corpus").iterdir())
SECONDS = os.environ.get("FUZZ_SECONDS", "2")


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the parsers with their driver, in a sanitizer build."""
    folder = tmp_path_factory.mktemp("fuzz")
    subprocess.run(["make", "-s", "-j2", "-C", str(FUZZ), f"BUILD={folder}"], check=True)
    return folder


def run(program: Path, corpus: Path, seconds: str, where: Path) -> "subprocess.CompletedProcess[str]":
    """Run a parser for some seconds with a new seed, which its output names."""
    words = [str(program), str(corpus), seconds]
    return subprocess.run(words, check=False, capture_output=True, text=True, errors="replace", cwd=where)


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_any_input(readers: Path, reader: str, tmp_path: Path) -> None:
    """No input from the corpus or derived from it causes a memory error, a leak, a hang or a violated invariant."""
    done = run(readers / reader, FUZZ / "corpus" / reader, SECONDS, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_reader_has_a_corpus(readers: Path) -> None:
    """Each parser that is built is run: each has a folder in the corpus, except the one with a planted error."""
    built = {path.name for path in readers.iterdir() if os.access(path, os.X_OK)}
    assert built == {*READERS, "planted"}


def test_a_planted_fault_is_found(readers: Path, tmp_path: Path) -> None:
    """The driver finds an error that needs three specific bytes, exits with an error and stores the input."""
    (tmp_path / "corpus").mkdir()
    done = run(readers / "planted", tmp_path / "corpus", "60", tmp_path)
    assert done.returncode != 0
    assert [path.read_bytes()[:3] for path in tmp_path.glob("crash-planted-*")] == [b"f=0"]
