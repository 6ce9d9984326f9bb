"""SSSD in the pods: who has its password, who its sockets."""

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.login import render_login
from soperator.render.cluster.slurmctld import render_controller
from soperator.render.jail.mount_plan import login_plan, worker_plan
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker.pod import render_worker
from tests.golden.cases import DEFAULTS

NODESET = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}}))


def cluster(**spec):
    """A cluster of this spec."""
    return Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate(spec))


def pods(of):
    """The pod specs of the roles in which users are looked up."""
    yield "slurmctld", render_controller(of, DEFAULTS)[0]["spec"]["template"]["spec"]
    yield "sshd", render_login(of, DEFAULTS)[0]["spec"]["template"]["spec"]
    yield "slurmd", render_worker(of, NODESET, 0, DEFAULTS)["spec"]


def test_sssd_alone_has_its_configuration_and_starts_before_who_asks_it():
    """In each role one container mounts the Secret, without any capability; the daemon mounts its sockets and cannot write among them."""
    for daemon, pod in pods(cluster(sssd={"configSecretName": "ldap"})):
        containers = [*pod["initContainers"], *pod["containers"]]
        by_name = {each["name"]: each for each in containers}
        assert [
            each["name"] for each in containers if any(mount["name"] == "sssd-config" for mount in each["volumeMounts"])
        ] == ["sssd"]
        assert by_name["sssd"]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": []}
        assert {"name": "sssd", "mountPath": "/var/lib/sss/pipes", "readOnly": True} in by_name[daemon]["volumeMounts"]
        assert list(by_name).index("sssd") < list(by_name).index(daemon)


def test_without_a_directory_there_is_nothing_of_it():
    """No container, volume or mount is there."""
    for _, pod in pods(cluster()):
        assert "sss" not in str(pod)
    for plan in (login_plan(cluster()), worker_plan(cluster(), NODESET)):
        assert not [each for each in plan if "sss" in each.target]


def test_the_jail_sees_the_sockets_for_lookups_and_no_others():
    """The plan of both roles binds the folder of which the private part is a volume of SSSD's container alone."""
    spec = cluster(sssd={"configSecretName": "ldap"})
    for plan in (login_plan(spec), worker_plan(spec, NODESET)):
        (mount,) = (each for each in plan if "sss" in each.target)
        assert (mount.source, mount.target) == ("/var/lib/sss/pipes", "/var/lib/sss/pipes")
        assert "ro" in mount.options
    for daemon, pod in pods(spec):
        private = [each["name"] for each in (*pod["initContainers"], *pod["containers"])
                   if any(mount["name"] == "sssd-private" for mount in each["volumeMounts"])]  # fmt: skip
        assert private == ["sssd"], daemon


def test_a_range_of_ids_is_asked_for_where_users_are_and_bounds_who_may_submit():
    """A wider range is checked in login and worker pods and told to the identity sidecar; the usual one, or none to be had, is checked by nobody."""

    def asked(spec):
        found = {}
        for name, pod in pods(spec):
            (daemon,) = (each for each in pod["containers"] if each["name"] == name)
            found[name] = {each["name"]: each["value"] for each in daemon["env"]}.get("SOPERATOR_IDS")
        identity = next(each for each in dict(pods(spec))["slurmctld"]["initContainers"] if each["name"] == "identity")
        return found, identity["command"][identity["command"].index("--ids") + 1]

    wide = {"slurmctld": None, "sshd": "131072", "slurmd": "131072"}
    nobody = dict.fromkeys(wide)
    assert asked(cluster(security={"idCount": 131072})) == (wide, "131072")
    assert asked(cluster()) == (nobody, "65536")
    assert asked(cluster(security={"idCount": 131072, "userNamespace": False})) == (nobody, "4294967294")
