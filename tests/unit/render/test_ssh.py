"""The workers' sshd in the rendered pod: there with what it needs, or not at all."""

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster import sshd
from soperator.render.cluster.login import render_login
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker.pod import render_worker
from tests.golden.cases import DEFAULTS

CLUSTER = Cluster("slurm", "demo", "1", SlurmClusterSpec())


def pod(**spec):
    """The spec of a worker's pod."""
    nodeset = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **spec}))
    return render_worker(CLUSTER, nodeset, 0, DEFAULTS)["spec"]


def test_a_worker_has_host_keys_and_roots_list_where_ssh_is_on():
    """Host keys are for root alone, and of the login nodes' ConfigMap only the list of root's keys is there."""
    spec = pod()
    slurmd, _watch = spec["containers"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounted = {each["name"]: each for each in slurmd["volumeMounts"]}
    assert volumes["hostkeys"]["secret"] == {"secretName": "demo-ssh-host-keys", "defaultMode": 0o400}
    assert [each["key"] for each in volumes["ssh"]["configMap"]["items"]] == ["authorized_keys_root"]
    assert mounted["hostkeys"]["readOnly"]
    assert mounted["ssh"]["readOnly"]
    assert {"name": "ssh", "containerPort": 22} in slurmd["ports"]


def test_without_ssh_there_is_nothing_of_it_on_a_worker():
    """No key, list, port or variable is there."""
    assert "ssh" not in str(pod(ssh=False)).lower()


def test_login_and_workers_have_the_same_host_keys():
    """All nodes are one host to a client, and vouch for each other by the same certificate."""
    stateful = next(each for each in render_login(CLUSTER, DEFAULTS) if each["kind"] == "StatefulSet")
    login = stateful["spec"]["template"]["spec"]
    secrets = [
        each["secret"]["secretName"]
        for spec in (pod(), login)
        for each in spec["volumes"]
        if each["name"] == "hostkeys"
    ]
    assert secrets == ["demo-ssh-host-keys"] * 2


def test_root_of_the_jail_lets_nobody_in_as_root():
    """In sshd's configuration of login, root's keys are those of the spec: no file of the jail is read for them."""
    config = next(each for each in render_login(CLUSTER, DEFAULTS) if each["kind"] == "ConfigMap")["data"][
        "sshd_config"
    ]
    block = config[config.index("Match User root") :]
    assert "AuthorizedKeysFile none" in block
    assert "authorized_keys_root" in block


def test_a_second_account_with_uid_0_does_not_log_in():
    """The account phase, which a login by key asks too, lets uid 0 in under the name root alone, before any other module says yes."""
    config = next(each for each in render_login(CLUSTER, DEFAULTS) if each["kind"] == "ConfigMap")["data"]
    account = [line for line in config["soperator-sshd.pam"].splitlines() if line.startswith("account")]
    assert [line.split("pam_")[1] for line in account[:2]] == [
        "succeed_if.so quiet uid != 0", "succeed_if.so quiet user = root",
    ]  # fmt: skip
    assert account[0].split()[1:3] == ["[success=1", "default=ignore]"]
    assert account[1].split()[1] == "requisite"


def test_one_address_does_not_take_all_places_of_login():
    """A pod next door that connects and says nothing keeps nobody out."""
    settings = dict(
        line.split(" ", 1) for line in sshd.config(CLUSTER).splitlines() if " " in line and line[0] not in "# "
    )
    assert int(settings["PerSourceMaxStartups"]) * 5 == int(settings["MaxStartups"].rpartition(":")[2])
