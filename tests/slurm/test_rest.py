"""The operator sees Slurm although others hold connections to its slurmrestd: a real slurmctld and slurmrestd, behind our nginx, without Kubernetes.

Needs root; the Debian root with slurmrestd and nginx is made where there is none (`python3 -m local.slurm_root rest`).
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import slurm_root
from soperator.render.parts.names import REST_LOCAL_PORT, REST_PORT, REST_READY_PORT
from soperator.slurmrest.token import sign
from tests.slurm.conftest import machine_of
from tests.slurm.machine import Slurm

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"), pytest.mark.timeout(180)]
PROXY = Path(__file__).parents[2] / "images/proxy"
KEY = b"k" * 32
JWT = "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key,disable_token_creation\n"
USERS = "for each in slurmrest:64031 proxy:64035 alice:1000 bob:1001; do useradd -M -u ${each#*:} ${each%:*} 2>/dev/null || true; done"
#: Connections held open without a word, from one address, until the file /tmp/held goes.
HOLD = """
import os, socket, sys, time
held = []
for _ in range(int(sys.argv[3])):
    held.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), source_address=(sys.argv[4], 0)))
    held[-1].sendall(sys.argv[5 + len(held) % len(sys.argv[5:])].encode())
open("/tmp/held", "w").close()
while os.path.exists("/tmp/held"):
    time.sleep(0.1)
"""
#: The same for an address that does not mind being refused.
FLOOD = """
import os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
held = []
def more():
    for _ in range(int(sys.argv[3])):
        try:
            held.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.5, source_address=(sys.argv[4], 0)))
            held[-1].sendall(b"GET / HTTP/1.1")
        except OSError:
            return
more()
open("/tmp/held", "w").close()
while os.path.exists("/tmp/held"):
    time.sleep(0.1)
"""
ASK = """
import http.client, sys, time
began = time.monotonic()
try:
    asked = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=10)
    asked.request("GET", "/slurm/v0.0.42/" + sys.argv[5], headers={"X-SLURM-USER-NAME": sys.argv[3], "X-SLURM-USER-TOKEN": sys.argv[4]})
    print(asked.getresponse().status)
except OSError as error:
    print(type(error).__name__)
"""
#: Says the head of a request and waits a second for the first line of an answer.
SEND = """
import socket
sock = socket.create_connection(("10.99.0.1", 6820))
sock.sendall({head}.encode())
sock.settimeout(1)
try:
    print(sock.recv(64))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A slurmctld, and slurmrestd with nginx before it as their pod has them."""
    slurm_root.make(slurm_root.REST, slurm_root.REST_PACKAGES)
    with machine_of(slurm_root.REST, tmp_path_factory.mktemp("rest")) as made:
        made.sh("chmod 1777 /tmp")
        made.sh(
            f"{USERS}; cat > /etc/slurm/jwt.key; chown slurm /etc/slurm/jwt.key; chmod 600 /etc/slurm/jwt.key",
            KEY.decode(),
        )
        made.sh("cat > /etc/slurm/more.conf", f"MinJobAge=300\n{JWT}")
        made.sh("printf '10.99.0.%s/24\\n' 7 8 9 | xargs -I{} ip addr add {} dev inside")
        made.begins()
        settings = "SLURM_JWT=daemon SLURMRESTD_SECURITY=disable_unshare_sysv,disable_unshare_files"
        daemon = f"slurmrestd -a rest_auth/jwt -s slurmctld -d v0.0.42 127.0.0.1:{REST_LOCAL_PORT}"
        made.sh(
            f"env {settings} setpriv --reuid 64031 --regid 64031 --clear-groups {daemon} > /tmp/rest.log 2>&1 < /dev/null &"
        )
        made.sh("install -d -m 0777 /run/proxy; rm -rf /etc/nginx/*")
        made.sh("cat > /etc/nginx/operator.conf", (PROXY / "operator.conf").read_text())
        made.sh(
            "setpriv --reuid 64035 --regid 64035 --clear-groups nginx -c /etc/nginx/operator.conf > /tmp/nginx.log 2>&1 < /dev/null &"
        )
        made.until(
            f"{python(READY)} | tee /tmp/ready; grep -q ready /tmp/ready || tail -n 5 /tmp/rest.log /tmp/nginx.log",
            "ready",
        )
        yield made


READY = f"""
import urllib.request
try:
    print(urllib.request.urlopen("http://localhost:{REST_READY_PORT}/readyz", timeout=5).read().decode().strip())
except OSError as error:
    print(error)
"""


def python(program: str, *words: object) -> str:
    """The command that runs a program."""
    return f"python3 -c '{program}' " + " ".join(f"'{each}'" for each in words)


def python3(program: str) -> str:
    """The same of a program with any quotation marks."""
    return f"python3 - <<'END'\n{program}\nEND\n"


def token(user: str, machine: Slurm) -> str:
    """A token of a user, by the machine's clock."""
    return sign(KEY, user, int(machine.sh("date +%s")) - 5, 600)


def ask(machine: Slurm, name: str = "slurm", of: str = "", port: int = REST_PORT, path: str = "nodes/") -> str:
    """The status of an answer to a request with a token of a user, or the error of the connection."""
    return machine.sh(
        python(ASK, "10.99.0.1" if port == REST_PORT else "127.0.0.1", port, name, token(of or name, machine), path)
    ).strip()


def held(machine: Slurm, port: int, count: int, source: str, *said: str) -> None:
    """Hold connections from an address; `letting_go` ends it."""
    host = "127.0.0.1" if port == REST_LOCAL_PORT else "10.99.0.1"
    program = python(HOLD, host, port, count, source, *(said or ("",)))
    machine.sh(f"rm -f /tmp/held; setsid {program} > /dev/null 2>&1 < /dev/null &")
    machine.until("ls /tmp/held 2> /dev/null", "/tmp/held")


def letting_go(machine: Slurm) -> None:
    """Let all connections go."""
    machine.sh("rm -f /tmp/held; sleep 0.5")


def test_without_nginx_idle_connections_blind_the_operator(rest: Slurm) -> None:
    """The control: 140 connections that say nothing keep slurmrestd itself from answering."""
    held(rest, REST_LOCAL_PORT, 140, "127.0.0.1")
    assert not re.fullmatch(r"\d+", ask(rest, port=REST_LOCAL_PORT))
    letting_go(rest)
    rest.until(python(ASK, "127.0.0.1", REST_LOCAL_PORT, "slurm", token("slurm", rest), "nodes/"), "200")


@pytest.mark.parametrize("said", ["", "GET / HTTP/1.1"], ids=["silent", "half a request"])
def test_the_operator_gets_answers_beside_idle_connections(rest: Slurm, said: str) -> None:
    """Three addresses with 140 connections each take nothing from it: 128 of an address are kept, and those for five seconds."""
    for number in (7, 8, 9):
        held(rest, REST_PORT, 140, f"10.99.0.{number}", said)
    assert [ask(rest) for _ in range(5)] == ["200"] * 5
    letting_go(rest)


def test_the_port_of_the_kubelet_is_no_way_round_the_bound(rest: Slurm) -> None:
    """Nine thousand half requests to it were all the connections that nginx has: the operator was refused, and the kubelet would end the pod."""
    rest.sh(
        f"rm -f /tmp/held; setsid {python(FLOOD, '10.99.0.1', REST_READY_PORT, 9000, '10.99.0.7')} > /tmp/flood.log 2>&1 < /dev/null &"
    )
    rest.until("ls /tmp/held 2> /dev/null", "/tmp/held")
    assert [ask(rest) for _ in range(3)] == ["200"] * 3
    assert "ready" in rest.sh(python(READY))
    letting_go(rest)


def test_an_address_has_a_bound(rest: Slurm) -> None:
    """The 129th connection of an address is closed at once, and another address is served."""
    held(rest, REST_PORT, 140, "10.99.0.7", "GET / HTTP/1.1")
    kept = rest.sh(f"ss -Htn state established src 10.99.0.7 dport = :{REST_PORT} | wc -l").strip()
    assert kept == "128"
    letting_go(rest)


#: The head of a request with a token that nobody has believed yet, and a body of so many bytes that does not come whole.
SUBMIT = "\r\n".join(
    [
        *("POST /slurm/v0.0.42/job/submit HTTP/1.1", "Host: x", "X-SLURM-USER-NAME: slurm", "X-SLURM-USER-TOKEN: x"),
        *("Content-Type: application/json", "Content-Length: {}", "", "{{"),
    ]
)


def test_requests_whose_bodies_do_not_come_take_no_place(rest: Slurm) -> None:
    """Only what is whole goes to slurmrestd; the others wait in nginx, for ten seconds."""
    for number in (7, 8, 9):
        held(rest, REST_PORT, 140, f"10.99.0.{number}", SUBMIT.format(1000))
    assert [ask(rest) for _ in range(5)] == ["200"] * 5
    letting_go(rest)


def test_a_body_is_no_larger_than_the_operator_needs(rest: Slurm) -> None:
    """What nobody has believed yet lies on the pod's disk, of which there are 2 GiB: over it the kubelet evicts the pod."""
    status = SEND.format(head=repr(SUBMIT.format(2 << 20)))
    assert "413" in rest.sh(python3(status))
    assert "413" not in rest.sh(python3(SEND.format(head=repr(SUBMIT.format(400 << 10)))))


def test_slurmrestd_has_connections_left_for_the_kubelet(rest: Slurm) -> None:
    """It has 124 in all; while it answers nobody, 110 of those who ask with whatever token get to it."""
    rest.sh("kill -STOP $(pidof slurmrestd)")
    try:
        held(rest, REST_PORT, 120, "10.99.0.7", SUBMIT.format(1))
        count = rest.sh(f"sleep 1; ss -Htn state established dport = :{REST_LOCAL_PORT} | wc -l").strip()
    finally:
        rest.sh("kill -CONT $(pidof slurmrestd)")
    letting_go(rest)
    assert count == "110"
    rest.until(python(ASK, "10.99.0.1", REST_PORT, "slurm", token("slurm", rest), "nodes/"), "200")


def test_a_users_token_is_good_for_nothing_here(rest: Slurm) -> None:
    """In her own name she is refused by nginx, in another's by Slurm."""
    assert ask(rest, "alice") == "403"
    assert ask(rest, "slurm", of="alice") in ("401", "500", "511")
    assert ask(rest, "slurm") == "200"
    assert ask(rest, "slurmrest", path="diag/") == "200"


def test_users_make_no_tokens_where_they_have_no_rest(rest: Slurm) -> None:
    """`scontrol token` is refused to alice, and not to root."""
    assert "SLURM_JWT=" not in rest.sh(
        "setpriv --reuid alice --regid alice --clear-groups scontrol token lifespan=infinite"
    )
    assert "SLURM_JWT=" in rest.sh("scontrol token lifespan=60")


USERS_PORT = 6821
#: The users' configuration, moved beside the operator's: a pod has one of them, and its slurmrestd listens on another port.
_BESIDE = {
    "127.0.0.1:6820": f"127.0.0.1:{REST_LOCAL_PORT}",
    "listen 8081": "listen 8082",
    "/run/proxy": "/run/users",
    "/dev/stdout": "/tmp/users.log",
}


@pytest.fixture(scope="module")
def users(rest: Slurm) -> Slurm:
    """The users' nginx too, without TLS."""
    text = (PROXY / "nginx.conf").read_text()
    for old, new in _BESIDE.items():
        assert old in text
        text = text.replace(old, new)
    rest.sh("install -d -m 0777 /run/users; touch /tmp/users.log; chmod 666 /tmp/users.log")
    rest.sh("cat > /etc/nginx/users.conf", text)
    rest.sh("cat > /etc/nginx/forward.conf", (PROXY / "forward.conf").read_text())
    rest.sh("cat > /run/users/listen.conf", (PROXY / "plain.conf").read_text().replace("/run/proxy", "/run/users"))
    rest.sh(
        "setpriv --reuid 64035 --regid 64035 --clear-groups nginx -c /etc/nginx/users.conf > /tmp/unginx.log 2>&1 < /dev/null &"
    )
    rest.until(f"ss -Hltn sport = :{USERS_PORT} | grep -o :{USERS_PORT}", f":{USERS_PORT}")
    return rest


CALL = """
import http.client
asked = http.client.HTTPConnection("10.99.0.1", {port}, timeout=20)
asked.request({method!r}, {path!r}, {body!r}, {headers!r})
answer = asked.getresponse()
print(answer.status, answer.read().decode())
"""
NODES, SUBMISSION = "/slurm/v0.0.42/nodes/", "/slurm/v0.0.42/job/submit"
#: A job that cannot be: what Slurm says of it shows that the request came through.
JOB = '{"job": {"script": "#!/bin/sh\\n"}}'


def call(machine: Slurm, path: str, body: str = "", method: str = "", bearer: str = "", name: str = "") -> str:
    """The status of a user's request, and what is said."""
    headers = {"Content-Type": "application/json"} | ({"X-SLURM-USER-NAME": name} if name else {})
    headers |= {"Authorization": f"Bearer {bearer or token('alice', machine)}"} if bearer != "none" else {}
    words = {"method": method or ("POST" if body else "GET"), "path": path, "body": body or None, "headers": headers}
    return machine.sh(python3(CALL.format(port=USERS_PORT, **words)))


def test_a_user_gets_through(users: Slurm) -> None:
    """Whatever the method, with a token that Slurm believes, and as herself."""
    for path in (NODES, "/slurm/v0.0.42/ping/", "/openapi/v3"):
        assert call(users, path).startswith("200")
    assert "Batch job submission failed" in call(users, SUBMISSION, JOB)
    assert "Invalid job id" in call(users, "/slurm/v0.0.42/job/99", method="DELETE")
    assert call(users, SUBMISSION, JOB, "PUT").startswith(("404", "405", "500"))


@pytest.mark.parametrize(("bearer", "name"), [("x.y.z", ""), ("none", ""), ("", "root")])
@pytest.mark.parametrize(("path", "body"), [(NODES, ""), (SUBMISSION, JOB), ("/openapi/v3", "")])
def test_nobody_else_gets_through(users: Slurm, path: str, body: str, bearer: str, name: str) -> None:
    """With a token of another key, with none, or in another's name: 401 whatever the method, and in our words."""
    said = call(users, path, body, bearer=bearer, name=name)
    assert said.startswith("401")
    assert "a token is needed" in said


def test_a_user_submits_as_nobody_else(users: Slurm) -> None:
    """Slurm refuses a job of another user's number before it looks at what the job is; the control is an administrator, who gets further."""
    whose = '{{"job": {{"script": "#!/bin/sh\\n", "environment": ["A=b"], "current_working_directory": "/tmp", "user_id": "{}"}}}}'
    for number in ("0", "64030", "root"):
        assert '"error_number": 2010' in call(users, SUBMISSION, whose.format(number))
    admin = call(users, SUBMISSION, whose.format("1000"), bearer=token("root", users))
    assert '"error_number": 2010' not in admin
    assert "error_number" in admin or '"job_id": 1' in admin  # there is no node, for which 26.05 lets the job wait


def test_who_is_not_believed_takes_no_place_of_users(users: Slurm) -> None:
    """A hundred requests of one pod, each with a token of nobody and a body that does not come."""
    held(users, USERS_PORT, 120, "10.99.0.7", SUBMIT.format(1000))
    assert [call(users, NODES)[:3] for _ in range(3)] == ["200"] * 3
    users.sh("sleep 3")
    assert users.sh(f"ss -Htn state established src 10.99.0.7 dport = :{USERS_PORT} | wc -l").strip() == "0"
    assert "Batch job submission failed" in call(users, SUBMISSION, JOB)
    letting_go(users)


@pytest.mark.parametrize("port", [USERS_PORT, 8082])
def test_one_address_does_not_take_all_connections_of_users(users: Slurm, port: int) -> None:
    """Two thousand half requests were all that nginx has; the lines of its log still have the client's address."""
    users.sh(
        f"rm -f /tmp/held; setsid {python(FLOOD, '10.99.0.1', port, 17000, '10.99.0.7')} > /dev/null 2>&1 < /dev/null &"
    )
    users.until("ls /tmp/held 2> /dev/null", "/tmp/held")
    assert [call(users, NODES)[:3] for _ in range(3)] == ["200"] * 3
    letting_go(users)
    assert '"client":"10.99.0.1"' in users.sh("grep nodes /tmp/users.log | tail -n 1")


def test_a_submission_that_does_not_come_keeps_no_question_back(users: Slurm) -> None:
    """A user whom Slurm believes may begin a hundred; what others ask is answered."""
    held(users, USERS_PORT, 120, "10.99.0.7", submission(token("alice", users)))
    assert [call(users, NODES)[:3] for _ in range(3)] == ["200"] * 3
    letting_go(users)


def submission(bearer: str, more: str = "") -> str:
    """The head of a submission whose body does not come."""
    return SUBMIT.format(1000).replace("TOKEN: x", f"TOKEN: {bearer}{more}").replace("NAME: slurm", "NAME: alice")


@pytest.mark.parametrize("signer", ["operator", "Slurm"])
def test_a_user_who_submits_slowly_keeps_no_other_user_from_submitting(users: Slurm, signer: str) -> None:
    """A user has twenty places, whatever number of tokens; the control is the same user's next submission, which is refused for now."""
    if signer == "Slurm":
        printed = [users.sh(f"scontrol token username=alice lifespan={each}") for each in range(100, 110)]
        tokens = [each.strip().removeprefix("SLURM_JWT=") for each in printed]
    else:
        tokens = [token("alice", users)]
    held(users, USERS_PORT, 120, "10.99.0.7", *map(submission, tokens))
    assert "Batch job submission failed" in call(users, SUBMISSION, JOB, bearer=token("bob", users))
    assert call(users, SUBMISSION, JOB).startswith("503")
    letting_go(users)


def test_two_tokens_in_a_request_are_not_more_places(users: Slurm) -> None:
    """Otherwise a second token, which Slurm does not read, would choose whose places are taken."""
    forged = sign(b"x" * 32, "bob", int(users.sh("date +%s")), 600)
    held(users, USERS_PORT, 120, "10.99.0.7", submission(token("alice", users), f"\r\nAuthorization: Bearer {forged}"))
    assert "Batch job submission failed" in call(users, SUBMISSION, JOB, bearer=token("bob", users))
    letting_go(users)


#: Sends submissions as fast as it gets answers, until /tmp/held goes; each of its threads has one connection at a time.
FORGE = """
import os, socket, sys, threading
def loop():
    while os.path.exists("/tmp/held"):
        try:
            with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5, source_address=("10.99.0.7", 0)) as sock:
                sock.sendall(sys.argv[3].encode())
                sock.recv(100)
        except OSError:
            pass
open("/tmp/held", "w").close()
for _ in range(60):
    threading.Thread(target=loop).start()
"""


def test_a_forged_token_takes_no_place_of_the_user_whose_name_it_has(users: Slurm) -> None:
    """A token is counted when Slurm has believed it; the control is that the forged ones are answered with 401 all the time."""
    forged = submission(sign(b"x" * 32, "bob", int(users.sh("date +%s")), 600))
    users.sh(f"setsid {python(FORGE, '10.99.0.1', USERS_PORT, forged)} > /dev/null 2>&1 < /dev/null &")
    users.until("ls /tmp/held 2> /dev/null", "/tmp/held")
    users.sh("sleep 1")
    said = [call(users, SUBMISSION, JOB, bearer=token("bob", users))[:3] for _ in range(20)]
    denied = users.sh("tail -n 200 /tmp/users.log | grep -c '\"status\":401'").strip()
    letting_go(users)
    assert "503" not in said
    assert int(denied) > 100


def test_a_hundred_tokens_are_verified_at_a_time(users: Slurm) -> None:
    """The next one comes again later; nginx alone would say 500."""
    users.sh("kill -STOP $(pidof slurmrestd)")
    try:
        held(users, USERS_PORT, 120, "10.99.0.7", SUBMIT.format(1000))
        said = call(users, SUBMISSION, JOB)
    finally:
        users.sh("kill -CONT $(pidof slurmrestd)")
    letting_go(users)
    assert said.startswith("503")
    assert "try again" in said
    assert "Batch job submission failed" in call(users, SUBMISSION, JOB)


@pytest.mark.parametrize(
    ("length", "status"),
    [("Content-Length: 1000", "401"), ("Transfer-Encoding: chunked", "413")],
    ids=["told", "not told"],
)
def test_a_question_with_a_body_is_one_with_a_body(users: Slurm, length: str, status: str) -> None:
    """It is read only with a token that Slurm believes; one whose length is not told is not read."""
    head = SUBMIT.replace("POST", "GET").replace("Content-Length: {}", length).format()
    assert status in users.sh(
        python3(SEND.replace("6820", str(USERS_PORT)).format(head=repr(f"{head[:-1]}5\r\nabcde\r\n")))
    )


def test_nginx_takes_the_configuration_with_tls(users: Slurm, tmp_path: Path) -> None:
    """The same with the other way to listen."""
    words = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", tmp_path / "key", "-out", tmp_path / "crt"]
    subprocess.run(["openssl", "req", "-x509", *words], check=True, capture_output=True)
    users.sh("mkdir -p /etc/soperator/tls /run/tls")
    users.sh("cat > /etc/soperator/tls/tls.crt", (tmp_path / "crt").read_text())
    users.sh("cat > /etc/soperator/tls/tls.key", (tmp_path / "key").read_text())
    users.sh("sed s,/run/users,/run/tls,g /etc/nginx/users.conf > /etc/nginx/tls-users.conf")
    users.sh("cat > /run/tls/listen.conf", (PROXY / "tls.conf").read_text().replace("/run/proxy", "/run/tls"))
    assert "successful" in users.sh("nginx -t -c /etc/nginx/tls-users.conf")
