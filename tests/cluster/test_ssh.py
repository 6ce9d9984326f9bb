"""SSH: whatever a client can do on a classic login node it can do here, and whoever should not come in does not."""

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from local import demo
from local.demo import KEY
from tests.cluster.lab import Held, Lab

pytestmark = pytest.mark.cluster

#: What an editor's bootstrap does over `ssh host bash`: unpack a server that it brings, start it apart from the session, tell where it listens.
BOOTSTRAP = """
set -eu
mkdir -p ~/.editor && cd ~/.editor && base64 -d > server.tar.gz <<'TAR'
{tar}
TAR
tar -xzf server.tar.gz && rm -f port
setsid nohup python3 server.py > log 2>&1 < /dev/null &
until [ -s port ]; do sleep 0.05; done
echo "listening=$(cat port)=="
"""
SERVER = b"""
import os, socket
server = socket.create_server(("127.0.0.1", 0))
open("pid", "w").write(str(os.getpid()))
open("port.new", "w").write(str(server.getsockname()[1]))
os.rename("port.new", "port")
while True:
    peer, _ = server.accept()
    peer.sendall(b"hello from pid %d" % os.getpid())
    peer.close()
"""


def command(lab: Lab, user: str, *options: str, then: str = "", talkative: bool = False) -> list[str]:
    """The ssh command with options before the host, and what is to be run there; a talkative one prints also what is no error."""
    *words, host = demo.ssh(lab.address, user)
    if talkative:
        words = [each.replace("LogLevel=ERROR", "LogLevel=INFO") for each in words]
    return [*words, *options, host, *([then] if then else [])]


def said(words: Sequence[str], **more: object) -> "subprocess.CompletedProcess[str]":
    """What a command printed, whatever its end."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, **more)  # type: ignore[call-overload, no-any-return]


@contextmanager
def running(words: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """A command that goes on until the block ends."""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        try:
            yield it
        finally:
            it.terminate()


@contextmanager
def agent(lab: Lab) -> Iterator[dict[str, str]]:
    """An agent that has the demo's key; the environment by which ssh finds it."""
    with tempfile.TemporaryDirectory(prefix="ssh") as folder:
        path = Path(folder, "agent")
        with running(["ssh-agent", "-D", "-a", str(path)]):
            lab.until("an agent", path.exists, 10)
            env = {"SSH_AUTH_SOCK": str(path), "PATH": "/usr/bin:/bin"}
            subprocess.run(["ssh-add", "-q", KEY], env=env, check=True, capture_output=True)
            yield env


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


def heard(port: int) -> str:
    """What a listener on this machine says; nothing while there is none."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as it:
        return it.makefile().read()
    return ""


def test_createuser_makes_a_user_who_logs_in_and_whose_first_job_is_not_held(lab: Lab) -> None:
    """Five users in a row are in within a second of createuser's end, and what they submit right then runs."""
    worst = 0.0
    for number in range(5):
        name = f"new{number}"
        # The job is submitted on login by root's shell, a few milliseconds after createuser: no SSH handshake gives slurmctld time.
        made = lab.ssh(
            "root",
            f"createuser {name} '{demo.public_key()}' && runuser -u {name} -- sbatch --parsable -D /home/{name} -o out --wrap id",
        )
        job = made.split()[-1]
        assert made.startswith(f"{name} ("), made
        began = time.monotonic()
        assert lab.ssh(name, "id -un") == f"{name}\n"
        worst = max(worst, time.monotonic() - began)
        lab.until(
            f"job {job} has run", lambda number=job: "COMPLETED" in lab.ssh("root", f"scontrol show job {number}"), 20
        )  # type: ignore[misc]
    lab.ssh("root", "for n in 0 1 2 3 4; do userdel -r new$n; done 2>/dev/null")
    assert worst < 1.0
    lab.timings.note("createuser → the new user is logged in (worst of 5)", worst)


def test_createuser_twice_and_two_at_once_make_one_user(lab: Lab) -> None:
    """Made again nothing changes; two calls at once for one name, and ten for ten names, all succeed; a contradiction is told in a sentence."""
    key = demo.public_key()
    script = f"""
        for n in 1 2; do createuser twin '{key}' & done; wait
        for n in 1 2 3 4 5 6 7 8 9 10; do createuser many$n & done; wait
        createuser twin --uid 4999 2>&1; grep -c . ~twin/.ssh/authorized_keys; stat -c '%U %a' ~twin/.ssh ~twin/.ssh/id_ed25519
        for n in 1 2 3 4 5 6 7 8 9 10; do id -u many$n; done | sort -u | wc -l
        for n in 1 2 3 4 5 6 7 8 9 10; do userdel -r many$n; done; userdel -r twin"""
    lines = [line for line in lab.ssh("root", f"({script}) 2>&1").splitlines() if "mail spool" not in line]
    assert sum(" made, " in line for line in lines) == 11, lines
    assert sum(" was there, " in line for line in lines) == 1
    assert next(line for line in lines if "createuser:" in line).endswith("change it with usermod, or leave it out.")
    assert lines[-4:] == ["2", "twin 700", "twin 600", "10"]


def test_nobody_comes_in_by_password(lab: Lab, alice: str) -> None:
    """A client without a key is told that keys are the only way, also for a user who has a password."""
    lab.ssh("root", f"echo '{alice}:correct horse' | chpasswd")
    for user in (alice, "root"):
        done = said(command(lab, user, "-o", "PubkeyAuthentication=no", "-o", "BatchMode=yes", then="true"))
        assert done.returncode == 255
        assert "Permission denied (publickey)" in done.stderr


def test_root_comes_in_by_the_keys_of_the_spec_alone(lab: Lab, tmp_path: Path) -> None:
    """A key that root of the jail writes into root's authorized_keys opens nothing, and an ordinary user's opens the user's account."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    lab.ssh(
        "root",
        f"mkdir -p -m 700 /root/.ssh; echo '{public}' >> /root/.ssh/authorized_keys; createuser keyed '{public}'",
    )
    words = [str(key) if each == str(KEY) else each for each in command(lab, "root", "-o", "IdentitiesOnly=yes")]
    *options, host = words
    assert "Permission denied" in said([*options, host, "true"]).stderr
    assert said([*options, host.replace("root@", "keyed@"), "id -un"]).stdout == "keyed\n"
    lab.ssh("root", "rm /root/.ssh/authorized_keys; userdel -r keyed 2>/dev/null")


def test_scp_works_by_both_of_its_protocols(lab: Lab, alice: str, tmp_path: Path) -> None:
    """The older protocol and the one over SFTP bring the same bytes there and back."""
    (tmp_path / "sent").write_bytes(bytes(range(256)) * 999)
    *scp, host = lab.words("scp", alice)
    for protocol in ("-O", "-s"):
        subprocess.run([*scp, protocol, str(tmp_path / "sent"), f"{host}by-scp"], check=True, capture_output=True)
        subprocess.run([*scp, protocol, f"{host}by-scp", str(tmp_path / "back")], check=True, capture_output=True)
        assert (tmp_path / "back").read_bytes() == (tmp_path / "sent").read_bytes()


def test_ports_are_forwarded_both_ways_and_the_agent_too(lab: Lab, alice: str, tmp_path: Path) -> None:
    """A client reaches a listener of login, login reaches one of the client, and login asks the client's agent."""
    there, here, far = free_port(), free_port(), free_port()  # the last one is login's, and free there too
    with socket.create_server(("127.0.0.1", here)) as server:
        words = command(
            lab,
            alice,
            "-N",
            "-o",
            "ExitOnForwardFailure=yes",
            "-L",
            f"{there}:127.0.0.1:22",
            "-R",
            f"{far}:127.0.0.1:{here}",
        )
        with running(words):
            lab.until("login's sshd answers through the tunnel", lambda: first_line(there).startswith("SSH-2.0-"), 20)
            with running(command(lab, alice, then=f"exec 3<>/dev/tcp/127.0.0.1/{far}; cat <&3")) as reader:
                server.settimeout(20)
                peer, _ = server.accept()
                peer.sendall(b"from the client")
                peer.close()
                assert reader.communicate(timeout=20)[0] == "from the client"
    with agent(lab) as env:
        done = said(command(lab, alice, "-A", then="ssh-add -l; ssh -o BatchMode=yes localhost id -un"), env=env)
        assert "soperator-demo (ED25519)" in done.stdout, done
        assert done.stdout.splitlines()[-1] == alice, done


def first_line(port: int) -> str:
    """The first line that a listener on this machine says."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as it:
        it.settimeout(5)
        return it.recv(100).decode()
    return ""


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ssh") as folder:
        yield Path(folder)


def test_an_editors_server_is_installed_runs_on_and_is_found_again(
    lab: Lab, alice: str, tmp_path: Path, sockets: Path
) -> None:
    """A bootstrap over `ssh host bash` starts a daemon on loopback, a multiplexed connection forwards to it, and both survive a disconnect."""
    (tmp_path / "server.py").write_bytes(SERVER)
    subprocess.run(["tar", "-czf", "server.tar.gz", "server.py"], cwd=tmp_path, check=True)
    tar = subprocess.run(["base64", tmp_path / "server.tar.gz"], capture_output=True, text=True, check=True).stdout
    control = ["-o", f"ControlPath={sockets}/%C", "-o", "ControlPersist=60", "-o", "ControlMaster=auto"]

    began = time.monotonic()
    done = said(command(lab, alice, *control, "-T", then="bash"), input=BOOTSTRAP.format(tar=tar))
    assert "listening=" in done.stdout, done
    far = done.stdout.split("=")[1]
    greetings = set()
    for _ in range(2):
        near = free_port()
        subprocess.run(
            command(lab, alice, *control, "-O", "forward", "-L", f"{near}:127.0.0.1:{far}"),
            check=True,
            capture_output=True,
        )
        greetings.add(heard(near))
        lab.timings.note("an editor's server: bootstrap, forward, answer", time.monotonic() - began)
        subprocess.run(command(lab, alice, *control, "-O", "exit"), check=True, capture_output=True)
        began = time.monotonic()
        assert said(command(lab, alice, *control, then="true")).returncode == 0  # the next master
    subprocess.run(command(lab, alice, *control, "-O", "exit"), check=False, capture_output=True)
    lab.ssh(alice, "kill $(cat ~/.editor/pid) && rm -rf ~/.editor")
    assert len(greetings) == 1, greetings
    assert greetings.pop().startswith("hello from pid")


@pytest.fixture
def two_logins(lab: Lab) -> Iterator[None]:
    """Two login pods behind a Service that sends each connection to any."""
    lab.patch("slurmcluster", lab.cluster, {"login": {"replicas": 2, "service": {"sessionAffinity": "None"}}})
    lab.until("two login pods", lambda: lab.status().get("login", {}).get("summary") == "2/2", 90)
    yield
    lab.patch("slurmcluster", lab.cluster, {"login": {"replicas": 1, "service": {"sessionAffinity": None}}})
    lab.wait_available()


def test_two_login_nodes_are_one_host_to_a_client(lab: Lab, alice: str, tmp_path: Path, two_logins: None) -> None:
    """Who trusts the first host key met reaches both login nodes by one address without a warning, and each from the other by its name."""
    known = tmp_path / "known_hosts"
    words = [each.replace("/dev/null", str(known)).replace("StrictHostKeyChecking=no", "StrictHostKeyChecking=accept-new")
             for each in command(lab, alice, talkative=True)]  # fmt: skip
    nodes = set()
    until = time.monotonic() + 30
    said([*words, "true"])
    while len(nodes) < 2 and time.monotonic() < until:
        done = said([*words, "hostname"])
        assert done.stderr == "", done
        nodes.add(done.stdout.strip())
    assert nodes == {"demo-login-0", "demo-login-1"}
    assert len(known.read_text().splitlines()) == 1
    lab.ssh("root", f"createuser {alice}")
    assert lab.ssh(alice, "for n in 0 1; do ssh -o BatchMode=yes demo-login-$n hostname; done").split() == [
        "demo-login-0",
        "demo-login-1",
    ]


def test_a_client_comes_back_to_its_login_node(lab: Lab) -> None:
    """The Service keeps a client with one login node unless the spec says otherwise."""
    service = json.loads(lab.kubectl("get", "service", f"{lab.cluster}-login", "-o", "json"))
    assert service["spec"]["sessionAffinity"] == "ClientIP"


def hop(where: str, what: str = "", options: str = "") -> str:
    """An ssh from node to node that may ask nothing: neither for a password nor whether the host is known."""
    return f"ssh -o BatchMode=yes -o StrictHostKeyChecking=yes {options} {where} {what}"


@pytest.fixture(scope="module")
def job(lab: Lab, alice: str) -> Iterator[Held]:
    """A job of alice on worker-0, which has a file in its own /tmp."""
    held = lab.hold("worker-0")
    lab.ssh(alice, f"srun --overlap --jobid {held.number} sh -c 'echo {held.number} > /tmp/of-the-job'")
    yield held
    if held.state() == "RUNNING":
        held.let_go()


def test_without_a_job_on_the_worker_nobody_gets_there(lab: Lab, alice: str, job: Held) -> None:
    """A user with a job elsewhere, one without any, and root are told so in a sentence, and are not let in."""
    lab.ssh("root", f"createuser bystander '{demo.public_key()}'")
    for user, node in ((alice, "worker-1"), ("bystander", "worker-0")):
        done = said(command(lab, user, then=hop(node, "hostname")))
        assert (done.returncode, done.stdout) == (255, ""), done
        assert f"{user} has no job on {node}" in done.stderr, done
    with agent(lab) as env:
        root = said(command(lab, "root", "-A", then=hop("worker-0", "hostname")), env=env)
    assert (root.returncode, root.stdout) == (255, ""), root
    assert "root has no job on worker-0" in root.stderr, root
    lab.ssh("root", "userdel -r bystander 2>/dev/null")


def test_a_session_on_a_worker_is_in_the_job(lab: Lab, alice: str, job: Held) -> None:
    """It has the job's namespaces, its /tmp and few capabilities, sees the job's processes and no daemon; files come by scp and sftp."""
    look = "readlink /proc/self/ns/mnt; readlink /proc/self/ns/pid; cat /tmp/of-the-job; grep -E '^Cap(Bnd|Eff)' /proc/self/status"
    in_step = lab.ssh(alice, f'srun --overlap --jobid {job.number} sh -c "{look}"')
    in_session = lab.ssh(alice, hop("worker-0", f'"{look}"'))
    assert in_session == in_step
    assert job.number in in_session
    processes = lab.ssh(alice, hop("worker-0", "ps -eo args"))
    assert "slurm_script" in processes
    assert not [
        line for line in processes.splitlines() if line.split()[0].rpartition("/")[2] in ("slurmd", "slurmstepd")
    ]
    to_and_fro = (
        "scp -q -o BatchMode=yes big worker-0:/tmp/by-scp && echo 'get /tmp/by-scp back' | sftp -q -b - worker-0"
    )
    copy = f"head -c 300000 /dev/urandom > big && {to_and_fro} && cmp big back"
    lab.ssh(alice, copy)
    assert lab.ssh(alice, f"srun --overlap --jobid {job.number} ls /tmp/by-scp") == "/tmp/by-scp\n"


def test_a_client_jumps_through_login_to_a_worker(lab: Lab, alice: str, job: Held) -> None:
    """By one command from outside, with a terminal, and with a port forwarded to what the job listens on."""
    jump = " ".join(command(lab, alice, "-W", "%h:%p"))
    words = [*command(lab, alice)[:-3], "-o", f"ProxyCommand={jump}", f"{alice}@worker-0"]
    done = said([*words[:-1], "-tt", words[-1], "tty; hostname"], stdin=subprocess.DEVNULL)
    assert done.stdout.split() == ["/dev/pts/0", "worker-0"], done
    near, far = free_port(), free_port()
    serve = (
        f"import socket; s = socket.create_server(('127.0.0.1', {far})); p, _ = s.accept(); p.sendall(b'from the job')"
    )
    step = f'srun --overlap --jobid {job.number} python3 -c "{serve}"'
    with (
        running(command(lab, alice, then=step)),
        running([*words[:-1], "-N", "-L", f"{near}:127.0.0.1:{far}", words[-1]]),
    ):
        lab.until("the job answers through the tunnel", lambda: heard(near) == "from the job", 20)


def test_a_session_ends_with_its_job(lab: Lab, alice: str, job: Held) -> None:
    """When the job ends its sessions do, with what they have put into the background, and the node is free again."""
    lab.ssh(
        alice,
        hop(
            "worker-0",
            "\"setsid nohup sh -c 'while :; do date > alive; sleep 0.1; done' >/dev/null 2>&1 </dev/null &\"",
        ),
    )
    with running(command(lab, alice, then=hop("worker-0", "sleep 1000"))) as session:
        lab.until("the session runs", lambda: "sleep 1000" in lab.ssh(alice, hop("worker-0", "ps -eo args")), 20)
        job.let_go()
        began = time.monotonic()
        assert session.wait(timeout=20) != 0
        lab.timings.note("a job has ended → its SSH session has", time.monotonic() - began)
    before = lab.ssh(alice, "cat alive; sleep 1; cat alive; rm alive").splitlines()
    assert before[0] == before[1]
    refused = said(command(lab, alice, then=hop("worker-0", "hostname")))
    assert "has no job on worker-0" in refused.stderr, refused
    count = "grep -sl sshd-session /proc/[0-9]*/comm | wc -l"
    lab.until(
        "no process of a session is left in the pod",
        lambda: lab.kubectl("exec", "demo-worker-0", "-c", "slurmd", "--", "sh", "-c", count).strip() == "0",
        10,
    )
