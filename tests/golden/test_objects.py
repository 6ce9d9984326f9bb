"""The objects of a cluster, written down and reviewed like code. `make golden` rewrites them."""

import os
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.golden.cases import ACCOUNTED, BACKUPS, CASES, USERS, accounted, backed_up, for_users, rendered

HERE = Path(__file__).parent
KUBERNETES = "1.34"


class Dumper(yaml.SafeDumper):
    """Writes a text of several lines as such, so that a configuration file reads like one."""


def _text(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)
Dumper.ignore_aliases = lambda _dumper, _data: True


ALL = (*CASES, *ACCOUNTED, *USERS, *BACKUPS)


def objects(case):
    if case in BACKUPS:
        return backed_up(case)
    if case in USERS:
        return for_users(case)
    return accounted(case) if case in ACCOUNTED else rendered(case)


def files(case):
    return {name: yaml.dump(each, Dumper=Dumper, sort_keys=True, width=120) for name, each in objects(case).items()}


@pytest.mark.parametrize("case", ALL)
def test_the_objects_are_those_written_down(case):
    """Every object of the case is equal to its file, and no file is left over."""
    folder = HERE / case
    if os.environ.get("GOLDEN") == "write":
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.yaml"):
            old.unlink()
        for name, text in files(case).items():
            (folder / name).write_text(text)
    assert {path.name: path.read_text() for path in folder.glob("*.yaml")} == files(case)


@pytest.mark.parametrize("case", ALL)
def test_every_object_is_valid_for_kubernetes(case):
    """Each object passes Kubernetes' own schema, unknown fields refused."""
    for each in objects(case).values():
        if each["kind"] != "MariaDB":
            kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.parametrize("case", ALL)
def test_rendering_is_deterministic(case):
    """Two renderings are equal to the byte."""
    assert files(case) == files(case)


@pytest.mark.parametrize("case", ALL)
def test_no_pod_holds_kubernetes_credentials_and_none_is_privileged(case):
    """No pod mounts a service account's token, and no container is privileged."""
    for each in objects(case).values():
        spec = pod_spec(each)
        if spec:
            assert spec["automountServiceAccountToken"] is False
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                assert not container.get("securityContext", {}).get("privileged")


@pytest.mark.parametrize("case", ALL)
def test_no_container_of_users_mounts_a_slurm_key_in_the_jail(case):
    """No mount plan brings a key of Slurm, munge or REST into the jail, and sshd's container has none at all."""
    for each in objects(case).values():
        for key, text in (each.get("data") or {}).items():
            if key == "plan":
                assert "/etc/soperator/keys" not in text
                assert not re.search(r"/run/soperator(/keys)?\t", text)
        for container in (pod_spec(each) or {}).get("containers", []):
            if container["name"] == "sshd":
                assert not {mount["name"] for mount in container["volumeMounts"]} & {"keys", "private"}


def pod_spec(each):
    if each["kind"] == "Pod":
        return each["spec"]
    return each.get("spec", {}).get("template", {}).get("spec")
