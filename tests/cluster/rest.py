"""What tests of REST for users do: ask over TLS on the login node, keep asking, and have a certificate and tokens."""

import base64
import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local import demo
from tests.cluster.lab import Lab, condition, is_ready

HOST = "demo-rest-users.slurm.svc"
JOBS = "/slurm/v0.0.42/jobs/"
_REQUESTS = 20


def certificate(lab: Lab, folder: Path) -> None:
    """Put a new certificate of the Service into its Secret, and beside the former into the jail for curl."""
    names, files = f"subjectAltName=DNS:{HOST},DNS:localhost", ["-keyout", "tls.key", "-out", "tls.crt"]
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", f"/CN={HOST}", "-addext", names, *files]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    data = {name: base64.b64encode((folder / name).read_bytes()).decode() for name in ("tls.crt", "tls.key")}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rest-tls"}, "type": "kubernetes.io/tls"}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(secret | {"data": data}))
    add = "cd /home/alice; touch ca.crt; cat ca.crt - > ca.new; chmod 0644 ca.new; mv ca.new ca.crt"
    lab.ssh("root", add, (folder / "tls.crt").read_bytes())


def whole(lab: Lab) -> bool:
    """Whether slurmctld has its new configuration, and two pods of it are ready and no other is left."""
    pods = lab.pods("rest-users").values()
    is_applied = condition(lab.status(), "ConfigApplied")["status"] == "True"
    return is_applied and lab.is_whole() and len(pods) == 2 and all(map(is_ready, pods))


def held(lab: Lab) -> set[str]:
    """The Secrets that hold a token of a user."""
    found = json.loads(lab.kubectl("get", "secret", "-l", "slurm.soperator.io/role=token", "-o", "json"))["items"]
    return {each["metadata"]["name"] for each in found if each["data"].get("token")}


def ask(lab: Lab, path: str, token: str, *options: str) -> tuple[int, str]:
    """Status and text of an answer, asked for by curl on the login node."""
    text, _, code = lab.ssh("alice", curl(path, *options, bearer(token))).rpartition("\n")
    return int(code), text


def codes(lab: Lab, paths: Iterable[str], *options: str) -> set[str]:
    """The statuses of the answers for several paths, in one session."""
    return set(lab.ssh("alice", "; ".join(curl(path, *options, "-o /dev/null") for path in paths)).split())


def bearer(token: str) -> str:
    """The header with a token, for curl."""
    return f"-H 'Authorization: Bearer {token}'"


def curl(path: str, *options: str) -> str:
    """A command that asks for a path of the Service, and prints the status last."""
    return f"curl -sS --path-as-is --cacert ca.crt -w '\\n%{{http_code}}' {' '.join(options)} https://{HOST}:6820{path}"


def token(lab: Lab, user: str) -> str:
    """What `soperator token` prints for a user."""
    return lab.soperator("token", user, "--cluster", lab.cluster, "--namespace", lab.namespace).strip()


def submit(lab: Lab, bearer: str, command: str) -> int:
    """The number of a job that was submitted over REST."""
    job = {
        "name": "rest",
        "script": f"#!/bin/bash\n{command}\n",
        "environment": ["PATH=/usr/bin:/bin"],
        "current_working_directory": "/home/alice",
        "standard_output": "/home/alice/rest-%j.out",
    }
    body = json.dumps({"job": job}).replace("'", "'\\''")
    options = ["-H 'Content-Type: application/json'", f"-d '{body}'"]
    code, text = ask(lab, "/slurm/v0.0.42/job/submit", bearer, *options)
    assert code == 200, text
    return int(json.loads(text)["job_id"])


@contextmanager
def asking(lab: Lab, again: str = "") -> Iterator[None]:
    """Alice asks for the jobs all the while, one request after the other, and each is answered: so many at least that the answers say something."""
    stop, mine = "/home/alice/stop", token(lab, "alice")
    one = curl(JOBS, "-o /dev/null", again, bearer(mine))
    loop = (
        f"rm -f {stop}; while [ ! -e {stop} ]; do {one} 2>/dev/null || echo failed; done > codes; sort codes | uniq -c"
    )
    running = subprocess.Popen([*demo.ssh(lab.address, "alice"), loop], stdout=subprocess.PIPE, text=True)
    try:
        yield
        lab.until(
            f"{_REQUESTS} requests are answered", lambda: int(lab.ssh("alice", "wc -l < codes") or 0) >= _REQUESTS, 60
        )
    finally:
        lab.ssh("alice", f"touch {stop}")
    lines = [line.split() for line in running.communicate(timeout=60)[0].splitlines()]
    found = {code: int(count) for count, code in (each for each in lines if len(each) == 2)}
    assert set(found) == {"200"}, found


@contextmanager
def forwarded(lab: Lab) -> Iterator[str]:
    """The address at which this machine reaches the Service."""
    command = ["kubectl", "-n", lab.namespace, "port-forward", "service/demo-rest-users", ":6820"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=lab.target.env) as forwarding:
        assert forwarding.stdout
        try:
            yield f"https://localhost:{forwarding.stdout.readline().split(' -> ')[0].rpartition(':')[2]}"
        finally:
            forwarding.terminate()
