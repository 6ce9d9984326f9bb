"""A registry on this machine for the test of a release: distribution/registry, built from its Go module."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from local import goprogram
from local.progress import Failure

_PROGRAM = (Path(__file__).resolve().parent / "registry", "registry", "registry")
_START_S = 20.0


def find() -> Path | None:
    """Return the path of the registry's program; None if it is not built."""
    return goprogram.find(*_PROGRAM)


def build() -> Path:
    """Return the path of the registry's program, and build it if it is missing."""
    return goprogram.build(*_PROGRAM, "the first build takes a minute and a half of CPU time")


@contextmanager
def running(program: Path, folder: Path, login: str) -> Iterator[str]:
    """Run a registry with its content in a folder, for the login USER:PASSWORD only; yield 127.0.0.1:PORT."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    passwords = folder / "htpasswd"
    passwords.write_text(_htpasswd(login))
    configuration = folder / "registry.json"  # JSON is YAML
    configuration.write_text(
        json.dumps(
            {
                "version": "0.1",
                "log": {"level": "warn", "accesslog": {"disabled": True}},
                "storage": {"filesystem": {"rootdirectory": str(folder / "content")}},
                "http": {"addr": address},
                "auth": {"htpasswd": {"realm": "release", "path": str(passwords)}},
            }
        )
    )
    environment = os.environ | {"OTEL_TRACES_EXPORTER": "none"}
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", configuration], env=environment, stdout=log, stderr=log)
        try:
            _wait(process, address, folder / "registry.log")
            yield address
        finally:
            process.terminate()
            process.wait()


def manifest_digest(registry: str, name: str, reference: str, login: str) -> str | None:
    """Return the digest of a manifest in a registry without TLS, by tag or digest; None if it is not there."""
    headers = {
        "Accept": "application/vnd.oci.image.manifest.v1+json",
        "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
    }
    address = f"http://{registry}/v2/{name}/manifests/{reference}"
    request = urllib.request.Request(address, method="HEAD", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.headers["Docker-Content-Digest"])
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise


def _htpasswd(login: str) -> str:
    """Return a line of htpasswd with bcrypt, which is the only hash that the registry reads; Perl's crypt is libc's."""
    user, _, password = login.partition(":")
    script = 'print crypt($ARGV[0], q($2b$05$) . "abcdefghijklmnopqrstuu")'
    made = subprocess.run(["perl", "-e", script, password], capture_output=True, text=True, check=True).stdout
    return f"{user}:{made}\n"


def _wait(process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{address}/v2/", timeout=2):
                return
        except urllib.error.HTTPError:
            return  # it wants the password
        except OSError:
            time.sleep(0.1)
    raise Failure(f"the registry does not answer at {address}:\n{log.read_text()[-1000:]}")


if __name__ == "__main__":
    try:
        print(build())
    except Failure as failure:
        sys.exit(str(failure))
