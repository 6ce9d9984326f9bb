"""`python3 -m local.s3`: builds versitygw, a server with the API of S3 over a folder, from Go modules, for the tests of backups into a store.

It is not part of the local cluster: its build takes two minutes of CPU time, and only those tests need it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import goprogram
from local.progress import Failure

_PROGRAM = (Path(__file__).resolve().parent / "s3", "s3", "versitygw")
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
_STARTS_S = 20.0


@dataclass(frozen=True)
class Store:
    """A server that runs: its URL, its keys, the certificate by which clients know it, and the folder with its buckets."""

    endpoint: str
    access_key: str
    secret_key: str
    certificate: Path
    folder: Path


def find() -> Path | None:
    """Return the path of the server; None if it is not built."""
    return goprogram.find(*_PROGRAM)


def build() -> Path:
    """Return the path of the server, and build it if it is missing."""
    return goprogram.build(*_PROGRAM, "the first build takes two minutes of CPU time", _PACKAGE)


@contextmanager
def serve(program: Path, folder: Path, address: str, port: int) -> Iterator[Store]:
    """Serve the folders in `folder`/data as buckets over TLS meanwhile; raises Failure if the server does not start."""
    key, certificate, data = folder / "key.pem", folder / "certificate.pem", folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    _make_certificate(key, certificate, address)
    words = [str(program), "--port", f"{address}:{port}", "--cert", str(certificate), "--key", str(key)]
    store = Store(f"https://{address}:{port}", "backups", "a secret of forty characters, or less", certificate, data)
    env = os.environ | {"ROOT_ACCESS_KEY": store.access_key, "ROOT_SECRET_KEY": store.secret_key}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([*words, "posix", str(data)], stdout=log, stderr=log, env=env) as server,
    ):
        try:
            until = time.monotonic() + _STARTS_S
            while b"listening" not in (folder / "log").read_bytes():
                if server.poll() is not None or time.monotonic() > until:
                    raise Failure(f"versitygw does not start: {(folder / 'log').read_text()[-1000:]}")
                time.sleep(0.1)
            yield store
        finally:
            server.terminate()


def _make_certificate(key: Path, certificate: Path, address: str) -> None:
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
    words += ["-subj", "/CN=store", "-addext", f"subjectAltName=IP:{address}"]
    made = ["openssl", *words, "-keyout", str(key), "-out", str(certificate)]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"openssl made no certificate: {done.stderr[-500:]}")


if __name__ == "__main__":
    try:
        print(build())
    except Failure as failure:
        sys.exit(str(failure))
