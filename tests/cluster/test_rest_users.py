"""REST for users: over TLS, as oneself and nobody else, with tokens that end, and without a failure that a second try does not mend.

The long ones, a new certificate and new keys, are for `make test-rest`.
"""

import base64
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import demo, openapi
from soperator.slurmrest.token import sign
from tests.cluster import books
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition
from tests.cluster.rest import (
    HOST,
    JOBS,
    ask,
    asking,
    bearer,
    certificate,
    codes,
    forwarded,
    held,
    submit,
    token,
    whole,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
LONG = pytest.mark.skipif(not os.environ.get("SOPERATOR_REST"), reason="SOPERATOR_REST is not set")


@pytest.fixture(scope="module")
def rest(lab: Lab, alice: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The cluster with a slurmrestd for users, whose certificate the login node's users trust."""
    if not lab.target.is_local:
        pytest.skip("the image of nginx is not in a foreign cluster")
    proxy = books.bring_image("proxy")
    make_user(lab, "bob")
    lab.ssh("root", "rm -f /home/alice/ca.crt")
    certificate(lab, tmp_path_factory.mktemp("tls"))
    tokens = [{"user": "alice", "secretName": "alice-token"}, {"user": "ghost", "secretName": "ghost-token"}]
    users = {"tls": {"secretName": "rest-tls"}, "tokens": tokens}
    try:
        lab.patch("slurmcluster", lab.cluster, {"images": {"proxy": proxy}, "rest": {"users": users}})
        lab.timed("a slurmrestd for users: kubectl patch → both pods are ready", lambda: whole(lab), 120)
        yield lab
    finally:
        lab.patch("slurmcluster", lab.cluster, {"images": {"proxy": None}, "rest": {"users": None}})
    lab.until("users' slurmrestd and its tokens are gone", lambda: not (lab.pods("rest-users") or held(lab)), 90)
    lab.kubectl("delete", "secret", "rest-tls")
    lab.wait_available()


def test_a_job_is_submitted_over_tls_and_runs_in_the_jail_as_its_user(rest: Lab) -> None:
    """What `soperator token` printed is enough; the job is the user's own, and is in the jail."""
    number = submit(rest, token(rest, "alice"), "id -un; stat -c %i /home/alice")
    out = f"/home/alice/rest-{number}.out"
    rest.until(f"job {number} has ended", lambda: "COMPLETED" in rest.ssh("alice", f"scontrol show job {number}"), 30)
    said = rest.ssh("alice", f"cat {out}; stat -c %U {out}; rm {out}").splitlines()
    assert said[0] == said[-1] == "alice"
    assert said[-2] == rest.ssh("alice", "stat -c %i /home/alice").strip()


def test_without_a_token_that_slurm_believes_there_is_nothing(rest: Lab) -> None:
    """No token, a wrong one, one that has ended and another's name are refused, whatever is asked for; so is HTTP."""
    paths = (
        "/",
        "/openapi",
        "/openapi/v3",
        JOBS,
        "/slurm/v0.0.42/ping/",
        "/slurm/v0.0.42/job/submit",
        "/no",
        "/readyz",
    )
    assert codes(rest, paths) == {"401"}
    key = base64.b64decode(rest.look("secret", "demo-jwt-key")["data"]["jwt_hs256.key"])
    ended, forged = sign(key, "alice", int(time.time()) - 900, 600), sign(b"another key", "root", int(time.time()), 600)
    shown = ("/openapi/v3", JOBS, "/slurm/v0.0.42/ping/", "//slurm/v0.0.42/./ping/", "/slurm/v0.0.42/%70ing/")
    for bad in ("none", ended, forged):
        assert codes(rest, shown, f"-H 'X-SLURM-USER-TOKEN: {bad}'") == {"401"}
    mine = bearer(token(rest, "alice"))
    assert codes(rest, [JOBS], mine) == {"200"}
    for other in ("root", "slurm", "bob"):
        assert codes(rest, [JOBS], mine, f"-H 'X-SLURM-USER-NAME: {other}'") == {"401"}
    plain = rest.ssh("alice", f"curl -sS -o /dev/null -w '%{{http_code}}' http://{HOST}:6820/")
    assert plain == "400"


def test_nobody_changes_or_ends_the_job_of_another(rest: Lab) -> None:
    """Slurm refuses both, by REST and by scancel, and goes on; without accounting slurmctld would stand still (decision 79)."""
    mine, others = token(rest, "alice"), token(rest, "bob")
    number = submit(rest, mine, "sleep 300")
    change = ("-H 'Content-Type: application/json'", """-d '{"comment": "changed"}'""")
    answers = {each: ask(rest, f"/slurm/v0.0.42/job/{number}", each, *change) for each in (others, mine)}
    assert answers[others][0] != 200
    assert answers[mine][0] == 200, answers[mine]
    assert "changed" not in answers[others][1]
    for path in (f"/slurm/v0.0.42/job/{number}", "/slurm/v0.0.42/jobs/"):
        ask(rest, path, others, "-X DELETE")
    for option in ("", "--ctld"):
        assert "denied" in rest.ssh("bob", f"scancel {option} {number} 2>&1 || true")
    assert "JobState=CANCELLED" not in rest.ssh("alice", f"scontrol show job {number}")
    rest.ssh("alice", f"scancel {number}")
    rest.until(f"job {number} is ended", lambda: "CANCELLED" in rest.ssh("alice", f"scontrol show job {number}"), 30)


def test_a_user_makes_a_token_on_the_login_node_for_himself_and_for_no_longer_than_is_allowed(rest: Lab) -> None:
    """`scontrol token` needs no Kubernetes; it refuses what is too long, and another's name."""
    said = rest.ssh("alice", "scontrol token lifespan=600").strip()
    assert ask(rest, JOBS, said.removeprefix("SLURM_JWT="))[0] == 200
    for more in ("lifespan=99999999", "username=bob"):
        refused = rest.ssh("alice", f"scontrol token {more} 2>&1 || true")
        assert "SLURM_JWT" not in refused
    assert (
        rest.soperator("token", "alice", "-c", rest.cluster, "-n", rest.namespace, "--lifetime", "168h").count(".") == 2
    )


def test_a_secret_has_a_token_that_works_and_goes_with_its_entry(rest: Lab) -> None:
    """A user whom slurmctld does not know gets none, and the condition says so until the entry goes."""
    said = rest.until("the condition names ghost", lambda: condition(rest.status(), "RestServed"), 30)
    assert (said["status"], said["reason"]) == ("False", "TokensNotKept")
    assert "slurmctld does not know user ghost" in said["message"]
    assert held(rest) == {"alice-token"}
    data = rest.look("secret", "alice-token")["data"]
    assert base64.b64decode(data["user"]) == b"alice"
    assert ask(rest, JOBS, base64.b64decode(data["token"]).decode())[0] == 200
    rest.patch("slurmcluster", rest.cluster, {"rest": {"users": {"tokens": None}}})
    rest.until("the token is gone", lambda: not held(rest), 30)
    rest.until("all is well", lambda: condition(rest.status(), "RestServed")["status"] == "True", 30)


def test_no_request_fails_that_is_tried_again_while_a_pod_goes(rest: Lab) -> None:
    """One of two pods is deleted under requests, one after the other for as long as it takes until its successor is ready."""
    with asking(rest, "--retry 5 --retry-delay 1 --retry-all-errors"):
        first = min(rest.pods("rest-users"))
        rest.kubectl("delete", "pod", first, "--wait=false")
        rest.until("the pod is gone", lambda: first not in rest.pods("rest-users"), 60)
        rest.until("two pods are ready", lambda: whole(rest), 60)


@LONG
def test_a_new_certificate_is_taken_over_without_a_request_that_fails(rest: Lab, tmp_path: Path) -> None:
    """Both pods show it, without a restart, and nobody who asked all the while was turned away."""
    before = {
        name: pod["status"]["containerStatuses"][0]["containerID"] for name, pod in rest.pods("rest-users").items()
    }
    addresses = [pod["status"]["podIP"] for pod in rest.pods("rest-users").values()]
    with asking(rest):
        certificate(rest, tmp_path)
        rest.ssh(
            "root", "cat > /home/alice/new.crt; chmod 0644 /home/alice/new.crt", (tmp_path / "tls.crt").read_bytes()
        )
        new = "-o /dev/null -sS --cacert new.crt -w '%{http_code} '"
        each = "; ".join(
            f"curl {new} --connect-to {HOST}:6820:{one}:6821 https://{HOST}:6820/ || true" for one in addresses
        )
        took = rest.timed(
            "a new certificate: kubectl apply → both pods show it",
            lambda: rest.ssh("alice", each).split() == ["401", "401"],
            180,
        )
    assert took
    after = {
        name: pod["status"]["containerStatuses"][0]["containerID"] for name, pod in rest.pods("rest-users").items()
    }
    assert after == before


#: What the page on REST tells users to run.
PAGE = demo.ROOT / "docs/howto/rest.md"


def test_a_client_that_a_stock_generator_makes_submits_a_job(rest: Lab, tmp_path: Path) -> None:
    """As docs/howto/rest.md has it, word for word but for the address: from slurmrestd's own document to a job that has run."""
    python = openapi.find()
    if python is None:
        pytest.skip("python -m local.openapi has not been run")
    mine = token(rest, "alice")
    code, document = ask(rest, "/openapi/v3", mine)
    assert code == 200
    (tmp_path / "slurm.json").write_text(document)
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")
    generate = ["generate", "--path", "slurm.json", "--output-path", "client", "--config", "config.yaml"]
    subprocess.run([python, "-m", "openapi_python_client", *generate], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "tls.crt").write_text(rest.ssh("alice", "cat ca.crt"))
    with forwarded(rest) as address:
        (program,) = (each for each in PAGE.read_text().split("```python\n")[1:] if "AuthenticatedClient" in each)
        program = program.partition("```")[0].replace(f"https://{HOST}:6820", address)
        assert address in program
        mine = token(rest, "alice")
        env = {"PATH": "/usr/bin:/bin", "HOME": "/home/alice", "SLURM_JWT": mine, "PYTHONPATH": "client"}
        done = subprocess.run(
            [python, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    said, number = done.stdout.split()
    assert said in ("200", "HTTPStatus.OK"), done.stdout
    rest.until(
        f"job {number} has run", lambda: "JobState=COMPLETED" in rest.ssh("alice", f"scontrol show job {number}"), 60
    )
    rest.ssh("alice", f"rm -f slurm-{number}.out")


@LONG
@pytest.mark.timeout(900)
def test_new_keys_end_all_tokens_and_keep_their_bounds(rest: Lab) -> None:
    """What was signed before is refused when the rotation is over; new tokens work, one in a Secret is new by itself, and none lasts longer."""
    word, mine = (
        f"rest-{int(time.time())}",
        rest.ssh("alice", "scontrol token lifespan=3600").strip().removeprefix("SLURM_JWT="),
    )
    rest.patch(
        "slurmcluster", rest.cluster, {"rest": {"users": {"tokens": [{"user": "alice", "secretName": "alice-token"}]}}}
    )
    rest.until("the token is there", lambda: held(rest) == {"alice-token"}, 60)
    kept = rest.look("secret", "alice-token")["data"]["token"]
    assert ask(rest, JOBS, mine)[0] == ask(rest, JOBS, base64.b64decode(kept).decode())[0] == 200
    rest.patch("slurmcluster", rest.cluster, {"auth": {"rotateRequest": word}})
    rest.timed("auth.rotateRequest → the rotation is over", lambda: rest.status().get("keys") == word, 480)
    rest.until("the former token is refused", lambda: ask(rest, JOBS, mine)[0] == 401, 60)
    assert ask(rest, JOBS, base64.b64decode(kept).decode())[0] == 401
    new = base64.b64decode(rest.look("secret", "alice-token")["data"]["token"]).decode()
    for each in (
        new,
        token(rest, "alice"),
        rest.ssh("alice", "scontrol token lifespan=600").strip().removeprefix("SLURM_JWT="),
    ):
        assert ask(rest, JOBS, each)[0] == 200
    assert "SLURM_JWT" not in rest.ssh("alice", "scontrol token lifespan=99999999 2>&1 || true")
    rest.patch("slurmcluster", rest.cluster, {"rest": {"users": {"tokens": None}}})
    rest.wait_available()
