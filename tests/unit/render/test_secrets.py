"""Who can read the files of a Secret inside its pod: the uid that needs them, and no other."""

import pytest

from tests.golden.cases import ACCOUNTED, CASES, USERS, accounted, for_users, rendered


def pods():
    """The pod spec of every object of every golden case, by a name for the report."""
    for cases, made in ((CASES, rendered), (ACCOUNTED, accounted), (USERS, for_users)):
        for case in cases:
            for name, each in made(case).items():
                spec = each["spec"] if each["kind"] == "Pod" else each.get("spec", {}).get("template", {}).get("spec")
                if spec and "containers" in spec:
                    yield f"{case}/{name}", spec


def secret_modes(spec):
    """The mode of each volume of a pod that holds a Secret, by the volume's name; Kubernetes' own default is 0644."""
    for volume in spec.get("volumes", []):
        if "secret" in volume:
            yield volume["name"], volume["secret"].get("defaultMode", 0o644)
        if any("secret" in source for source in volume.get("projected", {}).get("sources", [])):
            yield volume["name"], volume["projected"].get("defaultMode", 0o644)


def uids(spec, volume):
    """The uids of the containers that mount a volume."""
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    return {
        each["securityContext"]["runAsUser"]
        for each in containers
        if volume in {mount["name"] for mount in each.get("volumeMounts", [])}
    }


FOUND = [(place, spec, volume, mode) for place, spec in pods() for volume, mode in secret_modes(spec)]


def test_every_kind_of_secret_is_among_the_cases():
    """The cases below hold all volumes with Secrets that pods of a cluster have."""
    assert {volume for _, _, volume, _ in FOUND} == {"keys", "hostkeys", "sssd-config", "database", "tls"}


@pytest.mark.parametrize(("place", "spec", "volume", "mode"), FOUND, ids=[f"{each[0]}:{each[2]}" for each in FOUND])
def test_a_secret_is_readable_for_who_needs_it_alone(place, spec, volume, mode):
    """Files of a Secret belong to root: the mode is 0400 where root reads them, and 0440 with a group where another uid does.

    The group is 0, or where the pod has no claim that of its only reader, by fsGroup.
    """
    readers, context = uids(spec, volume), spec["securityContext"]
    if "fsGroup" in context:
        assert (readers, mode) == ({context["fsGroup"]}, 0o440)
        assert not [each for each in spec["volumes"] if "persistentVolumeClaim" in each]
        return
    groups = context.get("supplementalGroups", [])
    assert (readers, mode) == ({0}, 0o400) or (0 not in readers and (mode, groups) == (0o440, [0]))


def test_slurmrestd_never_gets_the_group_of_root():
    """It ends at once when it is a member of it, also by a supplementary group (slurmrestd.c, `_check_user`)."""
    found = [spec for _, spec in pods() if "slurmrestd" in {each["name"] for each in spec.get("initContainers", [])}]
    assert found
    assert not [spec for spec in found if 0 in spec["securityContext"].get("supplementalGroups", [])]


def test_users_processes_never_share_a_container_with_group_readable_keys():
    """In the containers that make jails, where users' processes run, every Secret is root's alone: a user may belong to group 0."""
    for place, spec, volume, mode in FOUND:
        makers = [each for each in spec["containers"] if each["name"] in ("slurmd", "sshd")]
        assert mode == 0o400 or not any(volume in {each["name"] for each in of["volumeMounts"]} for of in makers), place
