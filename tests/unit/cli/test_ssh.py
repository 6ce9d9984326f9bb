"""`soperator ssh` makes the command that people would have to put together."""

import shlex

import pytest
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.cluster.ssh import LoginAddress, command, find_address, reachable
from soperator.cli.support.errors import CliError
from soperator.kube import kinds
from tests.unit.cli.test_drain import seeded

AT = LoginAddress("demo", "slurm", "192.0.2.7", 30022)


def with_service(kind, address):
    """A cluster whose login has a Service of this type."""
    fake = seeded(True)
    fake.world.find(kinds.SLURMCLUSTER, "slurm", "demo")["status"] = {"address": address}
    meta = {"name": "demo-login", "namespace": "slurm"}
    fake.world.seed({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"type": kind}})
    return fake


def test_to_the_login_node():
    """The host key is known by the cluster's name; words after -- are run there."""
    assert command(AT, ("alice", "key"), "", ["sinfo", "-N"]) == [
        "ssh", "-i", "key", "-p", "30022", "-o", "HostKeyAlias=soperator.slurm.demo", "alice@192.0.2.7", "sinfo", "-N",
    ]  # fmt: skip


def test_to_a_worker_by_way_of_login():
    """One ssh carries the other, so the worker needs no address outside."""
    words = command(AT, ("alice", ""), "worker-0", [])
    proxy = next(each for each in words if each.startswith("ProxyCommand=")).removeprefix("ProxyCommand=")
    hop = ["ssh", "-p", "30022", "-o", "HostKeyAlias=soperator.slurm.demo", "-W", "%h:%p", "alice@192.0.2.7"]
    assert shlex.split(proxy) == hop
    assert words[-1] == "alice@worker-0"


@pytest.mark.parametrize(
    ("kind", "address", "forward", "found"),
    [
        ("NodePort", "ssh -p 30022 root@192.0.2.7", False, AT),
        ("NodePort", "ssh -p 30022 root@192.0.2.7", True, LoginAddress("demo", "slurm")),
        ("ClusterIP", "ssh -p 22 root@10.96.0.9", False, LoginAddress("demo", "slurm")),
        ("LoadBalancer", "", False, LoginAddress("demo", "slurm")),
    ],
)
async def test_an_address_inside_kubernetes_is_forwarded(kind, address, forward, found):
    """So is one that is not known yet, or on request."""
    assert await find_address(with_service(kind, address).api(), "slurm", "demo", forward) == found


async def test_without_a_login_pod_there_is_a_sentence():
    """Instead of a connection that is refused."""
    with pytest.raises(CliError, match="no login pod is ready"):
        await find_address(seeded(False).api(), "slurm", "demo", False)


def test_without_kubectl_the_remedy_is_named(monkeypatch, tmp_path):
    """A port can be forwarded by kubectl only; what kubectl says is repeated."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="kubectl is not on PATH"), reachable(LoginAddress("demo", "slurm")):
        pass
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "error: no pod" >&2\nexit 1\n')
    (tmp_path / "kubectl").chmod(0o755)
    with pytest.raises(CliError, match="kubectl port-forward: error: no pod"), reachable(LoginAddress("demo", "slurm")):
        pass


def test_a_forwarded_port_is_used(monkeypatch, tmp_path):
    """The one that kubectl chose, and only as long as the session lasts."""
    script = '#!/bin/sh\necho "$@" > {0}/words\ntrap "touch {0}/ended; exit" TERM\necho "Forwarding from 127.0.0.1:4711 -> 22"\n'
    (tmp_path / "kubectl").write_text(script.format(tmp_path) + "while :; do /usr/bin/env sleep 0.05; done\n")
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SOPERATOR_CONTEXT", "far")
    with reachable(LoginAddress("demo", "slurm")) as at:
        assert at == LoginAddress("demo", "slurm", "127.0.0.1", 4711)
        assert not (tmp_path / "ended").exists()
    assert (tmp_path / "ended").exists()
    assert (tmp_path / "words").read_text().startswith("--context far -n slurm port-forward service/demo-login :ssh")


def test_words_after_the_dashes_are_no_options_of_ours(monkeypatch):
    """`-n` there belongs to the program that is run."""
    from soperator.cli.cluster import ssh

    seen = []
    monkeypatch.setattr(ssh, "_address", lambda *_: _done(AT))
    monkeypatch.setattr(ssh.subprocess, "run", lambda words, **_: seen.append(words) or _Ended())
    done = CliRunner().invoke(app, ["ssh", "demo", "-l", "bob", "--", "head", "-n", "3"])
    assert (done.exit_code, seen[0][-4:]) == (7, ["bob@192.0.2.7", "head", "-n", "3"])


class _Ended:
    returncode = 7


async def _done(value):
    return value
