"""Users of a directory service: a real slapd in the cluster, SSSD in the pods, ids above 65535."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from local import demo, images
from tests.cluster.lab import Lab, condition, is_ready, local

pytestmark = pytest.mark.cluster

SLAPD_CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "dc=test"
rootdn "cn=admin,dc=test"
rootpw secret
directory /var/lib/ldap
"""
USERS = """\
dn: dc=test
objectClass: dcObject
objectClass: organization
dc: test
o: test

dn: uid=lena,dc=test
objectClass: account
objectClass: posixAccount
uid: lena
cn: Lena
uidNumber: 100001
gidNumber: 100001
homeDirectory: /home/lena
loginShell: /bin/bash

dn: cn=lena,dc=test
objectClass: posixGroup
cn: lena
gidNumber: 100001

dn: cn=physics,dc=test
objectClass: posixGroup
cn: physics
gidNumber: 100500
memberUid: lena
"""
SSSD_CONF = """\
[sssd]
services = nss, pam
domains = test
[domain/test]
id_provider = ldap
auth_provider = none
sudo_provider = none
access_provider = permit
ldap_uri = ldap://ldap.slurm.svc.cluster.local
ldap_id_use_start_tls = false
ldap_search_base = dc=test
ldap_default_bind_dn = cn=admin,dc=test
ldap_default_authtok = secret
"""


@pytest.fixture(scope="module")
def directory(lab: Lab) -> Iterator[None]:
    """A slapd with one user and two groups, and the Secret by which SSSD finds it."""
    if not lab.target.is_local:
        pytest.skip("the image of slapd is not in a foreign cluster")
    python = "/usr/bin/python3"
    subprocess.run(
        [python, "-m", "local.images", "build", "sssd", "slapd"], cwd=demo.ROOT, check=True, capture_output=True
    )
    built = {each.name: each for each in images.built(["sssd", "slapd"])}
    local("load", *(str(each.tar) for each in built.values()))
    server = {
        "name": "slapd",
        "image": built["slapd"].references()["slapd"],
        "command": [
            "sh",
            "-c",
            "slapadd -f /conf/slapd.conf -l /conf/users.ldif && exec slapd -d 0 -f /conf/slapd.conf -h ldap:///",
        ],
        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
        "readinessProbe": {"tcpSocket": {"port": 389}, "periodSeconds": 1},
    }
    objects = [
        {"kind": "ConfigMap", "metadata": {"name": "ldap"}, "data": {"slapd.conf": SLAPD_CONF, "users.ldif": USERS}},
        {"kind": "Secret", "metadata": {"name": "ldap"}, "stringData": {"sssd.conf": SSSD_CONF}},
        {
            "kind": "Service",
            "metadata": {"name": "ldap"},
            "spec": {"selector": {"app": "ldap"}, "ports": [{"port": 389}]},
        },
        {
            "kind": "Pod",
            "metadata": {"name": "ldap", "labels": {"app": "ldap"}},
            "spec": {
                "containers": [server],
                "volumes": [{"name": "conf", "configMap": {"name": "ldap"}}],
                "terminationGracePeriodSeconds": 0,
            },
        },
    ]
    made = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **each} for each in objects]}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    lab.until("slapd is ready", lambda: is_ready(lab.look("pod", "ldap")), 30)
    image = built["sssd"].references()["sssd"]
    lab.patch(
        "slurmcluster",
        lab.cluster,
        {"images": {"sssd": image}, "sssd": {"configSecretName": "ldap"}, "security": {"idCount": 131072}},
    )
    lab.timings.note("a directory service is switched on", lab.wait_available(180))
    yield
    lab.patch(
        "slurmcluster",
        lab.cluster,
        {"images": {"sssd": None}, "sssd": {"configSecretName": None}, "security": {"idCount": None}},
    )
    lab.kubectl("delete", "pod,service,configmap,secret", "ldap", "--ignore-not-found", "--wait=false")
    lab.wait_available(180)


def test_a_user_of_the_directory_logs_in_and_works_on_all_nodes(lab: Lab, directory: None) -> None:
    """The user, whose ids are above 65535 and in no file of the jail, gets a home, logs in, and runs a job on two nodes with all groups."""
    known = lab.ssh("root", "getent passwd lena || true")
    assert known == "lena:*:100001:100001:Lena:/home/lena:/bin/bash\n", lab.tried(
        "logs", "demo-login-0", "-c", "sssd", "--tail=30"
    ).stdout
    said = lab.ssh("root", f"grep -c lena /etc/passwd; createuser lena '{demo.public_key()}'")
    assert said == "0\nlena (100001:100001) was there, home /home/lena, logs in with 1 key.\n"
    who = "uid=100001(lena) gid=100001(lena) groups=100001(lena),100500(physics)\n"
    assert lab.ssh("lena", "id") == who
    assert lab.ssh("lena", "srun -N2 id") == who * 2
    lab.ssh("lena", "sbatch --wait -o job.out --wrap 'touch made; stat -c \"%u %U\" made'")
    assert lab.ssh("lena", "cat job.out") == "100001 lena\n"
    lab.ssh("lena", "sbatch --wait --export=NONE -o job.out --wrap 'echo $HOME $USER'")
    assert lab.ssh("lena", "cat job.out") == "/home/lena lena\n"


def test_what_is_known_of_a_user_outlives_the_directory(lab: Lab, directory: None) -> None:
    """With slapd gone the user still logs in and runs jobs."""
    lab.kubectl("delete", "pod", "ldap", "--wait=true")
    assert lab.ssh("lena", "srun id -un; srun -N2 whoami").split() == ["lena"] * 3


def test_sssds_own_sockets_and_configuration_are_out_of_the_jails_reach(lab: Lab, directory: None) -> None:
    """Root of the jail, on login and in a job, sees the socket for look-ups, and neither those of SSSD's processes nor the password."""
    look = "ls -A /var/lib/sss/pipes /var/lib/sss/pipes/private; cat /etc/sssd/sssd.conf /etc/soperator/sssd/sssd.conf; touch /var/lib/sss/pipes/x"
    for words in (look, f"srun -w worker-0 sh -c '{look}'"):
        said = lab.ssh("root", f"({words}) 2>&1 || true")
        assert "nss" in said
        assert "sbus" not in said
        assert "authtok" not in said
        assert "Read-only file system" in said


def test_a_range_of_ids_that_a_node_does_not_map_is_told(lab: Lab, directory: None) -> None:
    """A cluster that asks for more ids than a pod's user namespace has says so in its condition: how many there are, and what to change."""
    lab.patch("slurmcluster", lab.cluster, {"security": {"idCount": 262144}})
    sentence = "maps the ids 0 to 131071, and spec.security.idCount is 262144: raise userNamespaces.idsPerPod"
    lab.until("the condition says so", lambda: sentence in condition(lab.status(), "Available")["message"], 60)
