"""The mount plan is data with properties."""

from pathlib import PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.agents.populate import FOLDERS, PLACEHOLDERS
from soperator.api.common import Submount
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.submounts import SUBMOUNT
from soperator.api.validation.validate import World
from soperator.policy.validation import problems
from soperator.render.cluster import login
from soperator.render.jail.mount_plan import (
    holder,
    is_below,
    login_plan,
    text,
    worker_plan,
)
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker import pod as worker_pod
from tests.examples import examples
from tests.golden.cases import DEFAULTS

#: What a pod has without a volume of ours: its image, what the kubelet and the container runtime give, what its entry script makes.
OF_THE_POD = (
    "/opt/soperator",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/dev",
    "/sys",
    "/run/slurm",
    "/run/soperator/hostkeys",
    "/run/driver",
    "/run/soperator/known_hosts",
)
#: Folders below a bind that are there because whoever writes that source makes them: slurmd, the image.
IN_A_SOURCE = ("/var/spool/slurmd/conf-cache", "/opt/soperator/driver")

PATHS = st.lists(st.sampled_from(["a", "b", "home", "opt", "usr", "é x"]), min_size=1, max_size=3).map("/".join)
SOURCES = st.one_of(
    st.builds(
        lambda name, sub: {"claimName": name, "subPath": sub},
        st.sampled_from(["homes", "data"]),
        st.sampled_from(["", "a"]),
    ),
    st.builds(lambda size: {"tmpfs": {"size": size}}, st.sampled_from(["1Gi", "64Mi"])),
    st.builds(lambda path: {"hostPath": {"path": path}}, st.sampled_from(["/mnt/nvme", "/mnt/x y"])),
    st.just({"volume": {"nfs": {"server": "files", "path": "/export"}}}),
)
SUBMOUNTS = st.lists(
    st.builds(
        lambda path, source, said: {"path": f"/{path}", **source, **said},
        st.one_of(PATHS, st.just("tmp")),
        SOURCES,
        st.sampled_from([{}, {"readOnly": True}, {"perJob": True}]),
    ),
    max_size=4,
)
GPUS = (
    {},
    {"vendor": "nvidia", "count": 8},
    {"vendor": "amd", "count": 4, "driver": {"hostPath": {"path": "/opt/driver"}}},
    {"vendor": "nvidia", "count": 1, "driver": {"cdi": {}}},
    {"driver": {"volume": {"emptyDir": {}}}},
)


@st.composite
def worlds(draw):
    """A cluster with a NodeSet that the operator accepts."""
    auth = draw(st.sampled_from(["slurm", "munge"]))
    shared, own = draw(SUBMOUNTS), draw(SUBMOUNTS)
    seen = set()
    shared, own = (
        [each for each in some if not (each["path"] in seen or seen.add(each["path"]))] for some in (shared, own)
    )
    per_node = draw(st.booleans())
    cluster = SlurmClusterSpec.model_validate(
        {"auth": {"type": auth}, "jail": {"submounts": shared, "perNode": per_node}}
    )
    gpu = draw(st.sampled_from(GPUS))
    nodeset = NodeSetSpec.model_validate(
        {"clusterRef": {"name": "demo"}, "submounts": own, "shmSize": "128Mi", "gpu": gpu}
    )
    return cluster, nodeset


def plans(world):
    """The plans of both roles, each with the container that carries it out."""
    cluster, nodeset = Cluster("slurm", "demo", "u", world[0]), NodeSet("slurm", "worker", "u", world[1])
    pod = worker_pod.render_worker(cluster, nodeset, 0, DEFAULTS)["spec"]
    yield worker_plan(cluster, nodeset), pod["containers"][0], pod
    stateful = next(each for each in login.render_login(cluster, DEFAULTS) if each["kind"] == "StatefulSet")
    pod = stateful["spec"]["template"]["spec"]
    yield login_plan(cluster), pod["containers"][0], pod


def accepted(world):
    """Whether the operator accepts the specs."""
    return not problems(World({"demo": world[0]}, {"worker": world[1]}))


@settings(max_examples=examples(60), deadline=None)
@given(worlds().filter(accepted))
def test_a_folder_is_mounted_before_what_lies_in_it_and_nothing_twice(world):
    """A target never lies above or at one that was mounted before it, or that one would vanish."""
    for plan, _, _ in plans(world):
        targets = [each.target for each in plan if each.is_mount]
        assert targets[0] == "/"
        assert len(set(targets)) == len(targets)
        for place, target in enumerate(targets):
            assert not any(is_below(before, target) for before in targets[:place])


@settings(max_examples=examples(60), deadline=None)
@given(worlds().filter(accepted))
def test_folders_of_jobs_on_storage_of_others_have_an_owner(world):
    """Two clusters of one name that share a folder have different folders in it; a volume of the pod's own needs no owner."""
    nodeset = NodeSet("slurm", "worker", "u", world[1])
    one, other = (worker_plan(Cluster("slurm", "demo", uid, world[0]), nodeset) for uid in ("u1", "u2"))
    jobs = [(each, its) for each, its in zip(one, other, strict=True) if each.kind == "scratch"]
    assert all((each.source == "/mnt/tmp") == (each.options == its.options) for each, its in jobs)
    assert all(
        f"owner=demo.{uid}" in each.options
        for pair in jobs
        for each, uid in zip(pair, ("u1", "u2"), strict=True)
        if each.source != "/mnt/tmp"
    )


@settings(max_examples=60, deadline=None)
@given(worlds().filter(accepted))
def test_every_source_is_in_the_pod(world):
    """What a line binds is a volume of the container, or what every pod of the role has."""
    for plan, container, pod in plans(world):
        volumes = {each["name"] for each in pod["volumes"]}
        mounted = [each["mountPath"] for each in container["volumeMounts"] if each["name"] in volumes]
        for each in filter(lambda each: each.is_mount, plan):
            given = any(each.source == path or is_below(each.source, path) for path in (*mounted, *OF_THE_POD))
            assert given or not each.source, str(each)


@settings(max_examples=examples(60), deadline=None)
@given(worlds().filter(accepted))
def test_no_line_needs_anything_written_to_the_shared_root(world):
    """A mount point in the shared root is one that populate makes, or a submount's; any other lies in what a line before it has mounted."""
    made = {"/", *(f"/{path}" for path in (*FOLDERS, *PLACEHOLDERS))}
    asked = {each.path for each in (*world[0].jail.submounts, *world[1].submounts)}
    for plan, _, _ in plans(world):
        for number, each in [(number, each) for number, each in enumerate(plan) if number and each.is_mount]:
            under = holder(plan[:number], each.target)
            if under.kind == "root":
                assert each.target in made | asked, str(each)
            elif under.kind != "tmpfs":
                assert each.target in IN_A_SOURCE or each.target in asked, str(each)


@settings(max_examples=examples(60), deadline=None)
@given(worlds().filter(accepted))
def test_a_plan_is_lines_of_five_fields_that_begin_with_the_root(world):
    """The file has the format that the C helper reads, whatever a path or the name of a volume holds."""
    for plan, _, _ in plans(world):
        lines = text(plan).splitlines()
        assert len(lines) == len(plan)
        assert lines[0].split("\t")[:3] == ["root", "/mnt/jail/root", "/"]
        assert [line.split("\t") for line in lines] == [
            [each.kind, each.source or "-", each.target, ",".join(each.options) or "-", each.why] for each in plan
        ]
        assert all(each.why for each in plan)


@settings(max_examples=examples(30), deadline=None)
@given(worlds().filter(accepted))
def test_a_line_that_mounts_nothing_speaks_of_what_is_mounted_before_it(world):
    """A variable gets a folder, and a pattern of devices a /dev, that a line before has made."""
    for plan, _, _ in plans(world):
        for number, each in enumerate(plan):
            assert each.is_mount or holder(plan[:number], f"{each.target}/x").kind in ("rbind", "dev")


@settings(max_examples=examples(30), deadline=None)
@given(worlds().filter(accepted))
def test_what_names_plugins_and_configuration_is_read_only_in_the_jail(world):
    """Whoever could write it would choose what Slurm's commands, or slurmd outside the jail, load."""
    for plan, _, _ in plans(world):
        options = {each.target: each.options for each in plan}
        for target in ("/run/slurm", "/opt/soperator", "/var/spool/slurmd/conf-cache"):
            assert "ro" in options.get(target, ("ro",))


@settings(max_examples=examples(30), deadline=None)
@given(worlds().filter(accepted))
def test_no_secret_of_the_pod_is_in_the_jail(world):
    """No line binds a folder that holds keys of daemons, and none of submounts may bring devices."""
    for plan, _, _ in plans(world):
        sources = [each.source for each in plan]
        assert not any(
            source in ("/etc/soperator/keys", "/run/soperator", "/etc/soperator", "/run") for source in sources
        )
        assert all("nodev" in each.options for each in plan if each.why.startswith("submount"))


def test_no_submount_may_cover_what_a_node_mounts_itself():
    """Each target of a plan with everything on, and each folder above one, is refused as a path; /tmp alone may be taken over."""
    everything = SlurmClusterSpec.model_validate({"auth": {"type": "munge"}, "sssd": {"configSecretName": "sssd"}})
    cluster = Cluster("slurm", "demo", "u", everything)
    gpu = {"vendor": "nvidia", "count": 1}
    nodeset = NodeSet("slurm", "worker", "u", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, "gpu": gpu}))
    targets = {each.target for plan in (login_plan(cluster), worker_plan(cluster, nodeset)) for each in plan} - {"/tmp"}
    assert len(targets) > 15
    for target in targets:
        for path in (target, *map(str, PurePosixPath(target).parents)):
            rule = next(each for each in SUBMOUNT if "mounts of every node" in each.message)
            assert not rule.holds(Submount(path=path, claim_name="a")), path
