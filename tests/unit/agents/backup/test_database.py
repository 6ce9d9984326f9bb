"""A dump is loaded as one that anybody may have written: with data for MariaDB, and with no command for the pod."""

import json
import os

import pytest

from soperator.agents.backup import database
from soperator.agents.backup.errors import BackupError

#: Writes its words and its environment to a file, and as the server waits until it is ended.
PROGRAM = """#!/usr/bin/python3
import json, os, sys, time
with open({log!r}, "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], dict(os.environ)]) + "\\n")
if "mariadb-install-db" in sys.argv[0]:
    os.mkdir(next(each for each in sys.argv if each.startswith("--datadir=")).partition("=")[2])
if "mariadbd" in sys.argv[0]:
    import signal
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    time.sleep(20)
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The calls of MariaDB's programs: name, words, environment."""
    monkeypatch.setattr(database, "UID", os.getuid())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    log, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    for name in ("mariadb", "mariadbd", "mariadb-install-db"):
        (programs / name).write_text(PROGRAM.format(log=str(log)))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    (tmp_path / "claim").mkdir()
    (tmp_path / "scratch").mkdir()
    (tmp_path / "dump").write_text("SELECT 1;\n")
    return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def load(tmp_path, name="slurm_acct_db"):
    database.load(tmp_path / "dump", tmp_path / "claim", name, tmp_path / "scratch")


@pytest.mark.skipif(os.getuid() != 0, reason="programs run as MariaDB's user, so it needs root")
def test_a_dump_runs_no_program_and_reads_no_key(tmp_path, calls):
    """The client's own commands are off, and no program of MariaDB has the keys of the store."""
    load(tmp_path)
    made = calls()
    (loaded,) = [words for name, words, _ in made if name == "mariadb" and words[-1] == "slurm_acct_db"]
    assert loaded[-3:] == ["--sandbox", "--disable-local-infile", "slurm_acct_db"]
    assert {name for name, _, _ in made} == {"mariadb", "mariadbd", "mariadb-install-db"}
    assert [env for _, _, env in made if "AWS_SECRET_ACCESS_KEY" in env] == []


@pytest.mark.parametrize("name", ["--skip-sandbox", "a`; DROP", "", "a/b"])
def test_the_name_of_a_database_is_no_option_and_no_statement(tmp_path, calls, name):
    """Before any program runs."""
    with pytest.raises(BackupError, match="which no backup of the operator does"):
        load(tmp_path, name)
    assert calls() == []
