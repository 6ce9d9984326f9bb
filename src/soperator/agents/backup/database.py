"""Dumps slurmdbd's database in one transaction, and loads a dump into a MariaDB that only this pod can reach."""

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from soperator.agents.backup.errors import BackupError

UID = 64034
_END = b"-- Dump completed"
_LONGEST = 300
_STARTS = 120.0
#: A planted dump may have commands of the client, such as `\\! PROGRAM`, or read files of the pod.
_DUMP_ONLY = ("--sandbox", "--disable-local-infile")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_PACKET = "--max-allowed-packet=64M"


@dataclass(frozen=True)
class Source:
    """The server, the user and the database, with the password."""

    host: str
    port: int
    user: str
    database: str
    password: str

    def dump(self, to: Path) -> None:
        """Dump the whole database in one consistent transaction; raises BackupError if the dump is incomplete."""
        options = ["--single-transaction", "--quick", "--hex-blob", "--skip-lock-tables", "--no-tablespaces"]
        with to.open("wb") as file:
            done = subprocess.run(
                ["mariadb-dump", *self._server(), *options, self.database],
                stdout=file,
                stderr=subprocess.PIPE,
                env=self._env(),
                check=False,
            )
        if done.returncode:
            raise BackupError(f"mariadb-dump of {self.database} at {self.host}: {_words(done.stderr)}")
        if not is_whole(to):
            raise BackupError(f"The dump of {self.database} at {self.host} ends early: its volume may be full.")

    def jobs(self, cluster: str) -> tuple[int, int]:
        """Return the number of the cluster's jobs in the database, and their highest id."""
        return self._count(f"SELECT COUNT(*), COALESCE(MAX(id_job), 0) FROM `{cluster}_job_table`")

    def _count(self, query: str) -> tuple[int, int]:
        words = ["mariadb", *self._server(), "--batch", "--skip-column-names", "--execute", query, self.database]
        done = subprocess.run(words, capture_output=True, env=self._env(), check=False)
        if done.returncode:
            raise BackupError(f"{self.database} at {self.host}: {_words(done.stderr)}")
        first, second = done.stdout.split()
        return int(first), int(second)

    def _server(self) -> list[str]:
        return ["--no-defaults", f"--host={self.host}", f"--port={self.port}", f"--user={self.user}"]

    def _env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "MYSQL_PWD": self.password}


def is_whole(dump: Path) -> bool:
    """Return whether a dump ends with the line that mariadb-dump writes last."""
    with dump.open("rb") as file:
        file.seek(max(0, dump.stat().st_size - 256))
        return _END in file.read()


def load(dump: Path, claim: Path, database: str, scratch: Path) -> None:
    """Create a new MariaDB in the folder `data` of the claim with the content of a dump.

    A rename puts the folder in its place when it is complete. MariaDB listens on a socket in `scratch` only. A folder `data` must not
    exist. Raises BackupError for a name that could be an option or a statement, which a planted manifest may have.
    """
    if not _NAME.fullmatch(database):
        raise BackupError(
            f"The backup names the database {database[:64]!r}, which no backup of the operator does.", True
        )
    made, log = claim / "data.restored", scratch / "log"
    shutil.rmtree(made, ignore_errors=True)
    os.chown(claim, UID, UID)
    os.chown(scratch, UID, UID)
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={made}", "--auth-root-authentication-method=socket"]
    _run([*install, "--auth-root-socket-user=mysql", "--skip-test-db", "--skip-name-resolve"])
    words = [
        "mariadbd",
        "--no-defaults",
        f"--datadir={made}",
        f"--socket={scratch}/socket",
        f"--pid-file={scratch}/pid",
    ]
    words += [f"--tmpdir={scratch}", "--skip-networking", "--innodb-flush-log-at-trx-commit=0", _PACKET]
    with (
        log.open("wb") as out,
        subprocess.Popen(words, stdout=out, stderr=out, env=_env(), user=UID, group=UID, extra_groups=[]) as server,
    ):
        try:
            client = ["mariadb", "--no-defaults", f"--socket={scratch}/socket", "--user=mysql", _PACKET]
            _wait(client, log)
            _run([*client, "--execute", f"CREATE DATABASE `{database}`"])
            with dump.open("rb") as file:
                _run([*client, *_DUMP_ONLY, database], file)
        finally:
            server.terminate()
            server.wait()
    if server.returncode:
        raise BackupError(
            f"mariadbd ended with {server.returncode} after the dump was read: {_words(log.read_bytes())}"
        )
    os.sync()
    made.rename(claim / "data")


def _wait(client: list[str], log: Path) -> None:
    until = time.monotonic() + _STARTS
    while True:
        try:
            return _run([*client, "--execute", "SELECT 1"])
        except BackupError:
            if time.monotonic() > until:
                raise BackupError(f"mariadbd does not start: {_words(log.read_bytes())}") from None
        time.sleep(0.5)


def _run(words: list[str], stdin: IO[bytes] | None = None) -> None:
    """Run a command as MariaDB's user; raises BackupError if it fails."""
    done = subprocess.run(
        words, stdin=stdin, capture_output=True, env=_env(), check=False, user=UID, group=UID, extra_groups=[]
    )
    if done.returncode:
        raise BackupError(f"{words[0]} ended with {done.returncode}: {_words(done.stderr or done.stdout)}")


def _env() -> dict[str, str]:
    """Return the environment of MariaDB's programs, which has no keys of a store: the statements of a dump could read them."""
    return {"PATH": os.environ["PATH"]}


def _words(printed: bytes) -> str:
    return " ".join(printed.decode(errors="replace").split())[-_LONGEST:]
