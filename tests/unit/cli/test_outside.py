"""The script that makes a host outside Kubernetes what a pod is."""

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from soperator.cli.support.errors import CliError
from soperator.cli.support.join_script import (
    Host,
    ReferencePod,
    for_host,
    script,
)
from soperator.render.parts import labels
from soperator.slurm.keys import RotationRecord, known, rotated

KEY = b"\x00\xffsecret"


def like(kind="Pod", name="slurmd", **more):
    """What a pod of the golden files has."""
    folder = Path(__file__).parents[2] / "golden/minimal"
    wanted = "pod-demo-worker-0" if kind == "Pod" else "statefulset-demo-login"
    (path,) = folder.glob(f"*-{wanted}.yaml")
    made = yaml.safe_load(path.read_text())["spec"]
    spec = made if kind == "Pod" else made["template"]["spec"]
    container = next(each for each in [*spec["initContainers"], *spec["containers"]] if each["name"] == name)
    files = {"keys": {"slurm.key": KEY}, "plan": {"plan": b"1\n"}, "hostkeys": {"ssh_host": b"never"}}
    return ReferencePod(container | more, spec["volumes"], files, spec["dnsConfig"]["searches"][0])


def command(text, name):
    """The words with which a container is started."""
    (line,) = [each for each in text.splitlines() if f"--name {name} " in each]
    return shlex.split(line)


def values(words, option):
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_a_host_becomes_a_node_like_those_of_a_nodeset():
    """The same image, settings, rights and mounts; its own name, the host's network, and no SSH of pods."""
    text = script(Host("demo", "bare-1", {"demo-jail": "/srv/jail"}), like())
    words = command(text, "soperator-demo")
    assert words[-2:] == ["registry.test/slurm:1", "slurmd"]
    settings = dict(each.split("=", 1) for each in values(words, "--env"))
    assert settings["SOPERATOR_NODE_NAME"] == "bare-1"
    assert settings["SOPERATOR_NODE_CONF"] == "Feature=worker"
    assert "SOPERATOR_SSH" not in settings
    assert "SYS_ADMIN" in values(words, "--cap-add")
    mounts = dict(reversed(each.rsplit(":", 1)[0].split(":", 1)) for each in values(words, "--volume"))
    assert mounts["/mnt/jail"] == "/srv/jail"
    assert mounts["/etc/soperator/keys"] == "/etc/soperator/demo/keys"
    assert "/etc/soperator/hostkeys" not in mounts
    assert any(each.startswith("/run:rw,exec,mode=0777,size=67108864") for each in values(words, "--tmpfs"))
    assert "never" not in text


def test_the_name_of_the_controller_is_no_command(tmp_path):
    """It is read from the pod's environment, which podTemplate may change; root of the host runs the script."""
    made = like()
    for each in made.container["env"]:
        if each["name"] == "SOPERATOR_CONTROLLER":
            each["value"] = f"$(touch {tmp_path}/ran):6817"
    lines = [each for each in script(Host("demo", "bare-1", {"demo-jail": "/"}), made).splitlines() if "getent" in each]
    assert len(lines) == 2
    for line in lines:
        subprocess.run(["timeout", "1", "sh", "-c", f"fail() {{ :; }}; sleep() {{ exit; }}; {line}"], check=False)
    assert not (tmp_path / "ran").exists()


def test_a_login_host_gets_the_commands_and_a_socket():
    """The commands come out of the image; the socket is the daemon's alone to write."""
    text = script(Host("demo", "", {}), like("StatefulSet", "sackd"))
    words = command(text, "soperator-demo")
    assert words[-1] == "sackd"
    assert values(words, "--user") == ["64030:64030"]
    assert "/run/slurm:/run/slurm:rw,rslave" in values(words, "--volume")
    assert "install -d -m 0755 -o 64030 /run/slurm" in text
    assert "$run cp $made:/opt/soperator /opt/soperator" in text


@pytest.mark.parametrize(("claims", "volume", "words"), [
    ({}, {}, "--claim: the pods mount claim demo-jail: give its path on this host, as --claim demo-jail=/PATH"),
    ({"demo-jail": "/j"}, {"name": "run", "csi": {"driver": "d"}}, "volume run of the pods has the type csi"),
])  # fmt: skip
def test_what_a_host_cannot_have_is_refused(claims, volume, words):
    """By the name of the volume, and of the option."""
    source = like()
    volumes = [volume if each["name"] == volume.get("name") else each for each in source.volumes]
    with pytest.raises(CliError, match=words):
        script(Host("demo", "bare-1", claims), ReferencePod(source.container, volumes, source.files, source.domain))


def test_a_cluster_with_munge_is_refused():
    """Its daemons need a munged beside them."""
    with pytest.raises(CliError, match="of the cluster is munge"):
        script(Host("demo", "", {}), like("StatefulSet", "sackd", env=[{"name": "SOPERATOR_AUTH", "value": "munge"}]))


def test_the_shell_takes_it():
    """And a host that lacks something is told before anything is written."""
    text = script(Host("demo", "bare-1", {"demo-jail": "/no/such/mount"}), like())
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    said = subprocess.run(
        ["sh"], input=text.replace("getent ahosts demo", "true demo"), text=True, check=False, capture_output=True,
        env={"PATH": "/usr/bin:/bin", "RUNTIME": "/bin/false"},
    )  # fmt: skip
    assert said.returncode == 1
    assert said.stderr == "soperator: mount /no/such/mount first\n"


def test_a_host_that_joins_in_a_rotation_signs_with_the_new_key_and_believes_both():
    """It is asked when every daemon knows the new key, and before anybody signs with it."""
    files = rotated({"slurm.key": b"former"}, RotationRecord("x", "Known"), b"new")
    got = for_host({labels.ROTATION: "x", labels.STAGE: "Known"}, files)
    assert known(got) == [("x", b"new"), (":first", b"former")]
    assert got["slurm.key"] == b"new"
    assert for_host({labels.ROTATION: "x", labels.STAGE: ""}, files) == files
    assert for_host({labels.STAGE: "Known"}, {"tls.crt": b"c"}) == {"tls.crt": b"c"}
