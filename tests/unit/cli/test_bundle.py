"""`soperator bundle` has what a person needs who cannot look at the cluster, and no byte of a Secret, wherever somebody copied it."""

import base64
import contextlib
import json
import tarfile
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.cli.archive.collect import ArchiveContent, ArchiveSource
from soperator.cli.archive.redaction import Redaction, clean_object
from soperator.cli.cluster.bundle import cleaned, gather, write
from soperator.cli.support.errors import CliError
from soperator.cli.support.find_cluster import find_cluster
from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.cli.slurm_stub import SlurmStub
from tests.unit.cli.test_status import seed
from tests.unit.fake_api import FakeApi
from tests.unit.fake_world import Fault

BINARY = bytes(range(7, 250, 5))
PASSWORD = 'p4ss"w0rd\\with/odd+chars'
PEM = "-----BEGIN OLD THING-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END OLD THING-----\n"
ADDRESS = "mysql://slurm:Zx81qqLmNbVc7733@db:3306/slurm"
SHORT = "hunter2"
SECRETS = {
    "key": BINARY,
    "password": PASSWORD.encode(),
    "pem": PEM.encode(),
    "url": ADDRESS.encode(),
    "short": SHORT.encode(),
}
TEXTS = (PASSWORD, PEM, ADDRESS, SHORT)


def forms(value: bytes) -> list[bytes]:
    """The forms in which the archive is searched for a value."""
    found = [
        value,
        value.hex().encode(),
        value.hex().upper().encode(),
        base64.b64encode(value),
        base64.urlsafe_b64encode(value),
    ]
    with contextlib.suppress(UnicodeDecodeError):
        found += [json.dumps(value.decode())[1:-1].encode(), quote(value.decode(), safe="").encode()]
    return found


def planted() -> str:
    """A text with each secret in each form, as a careless program might log it."""
    texts = [form.decode("latin-1") for value in SECRETS.values() for form in forms(value) if form.isascii()]
    inside = [
        base64.b64encode(f"{'x' * n}{text}yy".encode()).decode() for text in (PASSWORD, ADDRESS) for n in range(3)
    ]
    return "\n".join([*texts, *inside, *PEM.splitlines(), "connects with Zx81qqLmNbVc7733 now"])


@pytest.fixture
def fake():
    """A cluster in which somebody has copied every secret to every place."""
    fake, text = FakeApi(), planted()
    env = [
        {"name": "TOKEN", "value": "typed-by-hand-4711"},
        {"name": "COPY", "value": PASSWORD},
        {"name": "SOPERATOR_NODE_NAME", "value": "worker-0"},
    ]
    template = {"spec": {"containers": [{"name": "slurmd", "env": env, "args": [f"--password={SHORT}", ADDRESS]}]}}
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": {"a": "applied-by-hand-0815"}}),
        "note": text,
    }
    seed(
        fake,
        kinds.SLURMCLUSTER,
        "demo",
        {"config": {"extraLines": {"slurm": f"# {PASSWORD}"}}},
        {"why": f"it said {ADDRESS}"},
    )
    seed(fake, kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "podTemplate": template}, {})
    one = {
        "name": "demo-worker-0",
        "namespace": "slurm",
        "labels": labels.worker("demo", "worker"),
        "annotations": annotations,
    }
    status = {"containerStatuses": [{"name": "slurmd", "restartCount": 1}]}
    fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": one, "spec": template["spec"], "status": status})
    secret = {key: base64.b64encode(value).decode() for key, value in SECRETS.items()}
    meta = {"name": "keys", "namespace": "slurm", "annotations": annotations}
    fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": secret})
    copied = {
        "copy.txt": text,
        "slurm.conf": "ClusterName=demo\n",
        "slurmdbd.conf": "StoragePass=nowhere-else\nStorageUser=slurm\n",
    }
    config = {"name": "demo-config", "namespace": "slurm", "labels": labels.role("demo", "controller")}
    fake.world.seed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": config, "data": copied})
    event = {"name": "e1", "namespace": "slurm"}
    fake.world.seed({"apiVersion": "v1", "kind": "Event", "metadata": event, "reason": "Failed", "message": text})
    of_chart = {"app.kubernetes.io/name": "soperator", "app.kubernetes.io/component": "operator"}
    operator = {"name": "soperator-x", "namespace": "soperator-system", "labels": of_chart}
    fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": operator, "spec": {}, "status": {}})
    fake.logs["demo-worker-0", "slurmd"] = f"slurmd: started\n{text}\n"
    fake.pages["/version"] = '{"gitVersion": "v1.33.0"}'
    fake.pages["/api/v1/namespaces/soperator-system/pods/soperator-x:8080/proxy/metrics"] = (
        f'soperator_x{{a="{SHORT}"}} 1\n'
    )
    return fake


@pytest.fixture
def slurm(tmp_path):
    slurm = SlurmStub(tmp_path)
    for name in ("scontrol", "squeue", "sinfo", "sdiag"):
        slurm.answers(name, [{"": f"JobId=7 Comment={PASSWORD} NodeName=worker-0"}])
    return slurm


async def archive(fake, slurm, unsearched=False):
    source = ArchiveSource(fake.api(), await find_cluster(fake.api(), "slurm", "demo"), slurm.run)
    made, redaction = await gather(source, unsearched)
    return cleaned(made, redaction, "demo", unsearched)


async def test_no_byte_of_a_secret_is_in_it(fake, slurm):
    """Not in objects, annotations, environments, ConfigMaps, events, logs, metrics or Slurm's answers; not raw, in base64, or in hex."""
    files = await archive(fake, slurm)
    whole = b"\n".join(files.values())
    hits = [
        (path, form)
        for value in SECRETS.values()
        for form in forms(value)
        for path, content in files.items()
        if form in content
    ]
    assert hits == []
    for text in (
        b"typed-by-hand-4711",
        b"applied-by-hand-0815",
        b"nowhere-else",
        b"Zx81qqLmNbVc7733",
        *PEM.encode().splitlines()[1:3],
    ):
        assert text not in whole
    for n in range(3):
        inner = base64.b64encode(b"x" * n + PASSWORD.encode())[4:-4]
        assert inner not in whole


async def test_everything_else_is_in_it(fake, slurm):
    """What is no secret stays readable, and JSON stays JSON."""
    files = await archive(fake, slurm)
    assert files["files/demo-config/slurm.conf"] == b"ClusterName=demo\n"
    assert b"StorageUser=slurm" in files["files/demo-config/slurmdbd.conf"]
    assert b"slurmd: started" in files["logs/demo-worker-0/slurmd.log"]
    assert b"slurmd: started" in files["logs/demo-worker-0/slurmd.previous.log"]
    objects = {path: json.loads(content) for path, content in files.items() if path.endswith(".json")}
    assert objects["objects/secrets.json"]["items"][0]["keys"] == sorted(SECRETS)
    env = objects["objects/pods.json"]["items"][0]["spec"]["containers"][0]["env"]
    assert env[2] == {"name": "SOPERATOR_NODE_NAME", "value": "worker-0"}
    assert objects["versions/kubernetes.json"]["gitVersion"] == "v1.33.0"
    assert b"JobId=7" in files["slurm/jobs.txt"]
    assert b"SlurmCluster demo" in files["status.txt"]
    assert files["errors.txt"] == b"nothing\n"


async def test_what_cannot_be_read_is_named(fake, slurm):
    """An archive is made when something is broken: the rest of it is there."""
    slurm.answers("scontrol", [{"": "slurm_load error: Unable to contact slurm controller"}], code=1)
    fake.faults.append(Fault("list", "events", 403, "Forbidden", "no"))
    errors = (await archive(fake, slurm))["errors.txt"].decode()
    assert "events: 403 Forbidden: no" in errors


async def test_without_a_look_at_secrets_nothing_is_written(fake, slurm):
    """Unless somebody accepts it, and then the archive says so; the forms of secrets are removed still."""
    fake.faults.append(Fault("list", "secrets", 403, "Forbidden", "no", times=1))
    with pytest.raises(CliError, match=r"Secrets of slurm, soperator-system cannot be read, .*give --unsearched"):
        await archive(fake, slurm)
    fake.faults.append(Fault("list", "secrets", 403, "Forbidden", "no", times=9))
    files = await archive(fake, slurm, unsearched=True)
    assert b"NOT searched for" in files["README.txt"]
    assert b"typed-by-hand-4711" not in b"".join(files.values())


@given(
    st.binary(min_size=8, max_size=40),
    st.binary(max_size=5),
    st.binary(max_size=5),
    st.sampled_from(["raw", "hex", "base64"]),
)
def test_a_value_is_found_whatever_stands_around_it(value, before, after, form):
    """Of its bytes nothing is left that Redaction finds, and no form of the whole value."""
    encode = {"raw": bytes, "hex": lambda each: each.hex().encode(), "base64": base64.b64encode}[form]
    redaction = Redaction([value])
    content = redaction.clean(encode(before + value + after))
    assert not redaction.finds(content)
    if len(value.strip()) >= 8:
        assert encode(value) not in content


def test_forms_of_secrets_are_removed_without_knowing_them():
    """Private keys, tokens and passwords, as in a file or in JSON; a password that is not set stays."""
    redaction = Redaction([])
    key = b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"
    assert redaction.clean(b"a " + key + b" b") == b"a (redacted) b"
    token = b"eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.abcDEF123"
    assert redaction.clean(b"Authorization: Bearer " + token) == b"Authorization: Bearer (redacted)"
    assert redaction.clean(b'StoragePass=abc\n"password": "x y"') == b'StoragePass=(redacted)\n"password": "(redacted)"'
    assert redaction.clean(b"AccountingStoragePass   = (null)") == b"AccountingStoragePass   = (null)"
    assert redaction.clean(b"passwordSecretKeyRef: {name: db}") == b"passwordSecretKeyRef: {name: db}"


def test_a_short_value_is_a_whole_word():
    """hunter2 is removed, and is not searched for inside of other words; harmless words of Secrets stay."""
    redaction = Redaction([b"hunter2", b"slurm", b"abc"], {"slurm"})
    assert redaction.clean(b"hunter2 hunter22 slurm abc") == b"(redacted) hunter22 slurm abc"


def test_an_object_keeps_its_shape():
    """Secrets keep their keys, environments their names, references stay."""
    ref = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    found = clean_object(
        {"kind": "Secret", "data": {"b": "eA==", "a": ""}, "metadata": {"managedFields": [1]}, "spec": {"env": [ref]}}
    )
    assert found == {"kind": "Secret", "keys": ["a", "b"], "metadata": {}, "spec": {"env": [ref]}}


def test_a_secret_that_would_stay_stops_the_archive():
    """The last look fails closed."""

    class Blind(Redaction):
        def clean(self, content):
            return content

    with pytest.raises(CliError, match=r"x.txt: the file still has content of a Secret"):
        cleaned(ArchiveContent({"x.txt": b"p4ssw0rd-of-db"}), Blind([b"p4ssw0rd-of-db"]), "demo", False)


def test_the_file_is_its_owners_and_never_another(tmp_path):
    """Mode 0600; an archive that is there is not written over."""
    path = tmp_path / "demo.tar.gz"
    write(path, {"a/b.txt": b"x"})
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as found:
        assert found.getnames() == ["demo/a/b.txt"]
    with pytest.raises(CliError, match=r"demo.tar.gz exists already: give another name"):
        write(path, {})
    with pytest.raises(CliError, match="No such file or directory"):
        write(tmp_path / "no/such.tar.gz", {})


async def test_secrets_beside_the_operators_pods_are_searched_for(fake, slurm):
    """Its logs are collected wherever its pods are found, also by who may not see its Deployment."""
    data = {"token": base64.b64encode(b"of-the-operator-4712").decode()}
    meta = {"name": "own", "namespace": "soperator-system"}
    fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    fake.pages["/api/v1/namespaces/soperator-system/pods/soperator-x:8080/proxy/metrics"] = "x of-the-operator-4712 1\n"
    files = await archive(fake, slurm)
    assert b"(redacted)" in files["operator/soperator-x/metrics.txt"]
    assert not [path for path, content in files.items() if b"of-the-operator-4712" in content]
