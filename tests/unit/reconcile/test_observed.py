"""What the operator tells of clusters."""

import msgspec
import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube.views import ConditionView, Custom, ObjectMeta, Pod, PodStatus
from soperator.observe import operator as names
from soperator.reconcile.cache.informers import make_stores
from soperator.reconcile.cache.slurm_poller import SlurmWatch
from soperator.reconcile.io.metrics import observed
from soperator.reconcile.io.volume_capacity import Sizes, VolumeCapacity, sizes_of
from soperator.render.parts.model import Cluster


async def _nobody(_key):
    raise AssertionError("nobody is followed")


def reported(status, room=None):
    stores, watch = make_stores(), SlurmWatch(_nobody, lambda _: None)
    stores.clusters.put(Custom(ObjectMeta(name="demo", namespace="slurm", uid="1"), status=status))
    return {metric: list(samples) for metric, samples in observed(stores, watch, room or VolumeCapacity(lambda: 0.0))}


def test_a_condition_is_told_as_it_stands():
    """True and False are, and what nobody knows is not."""
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "JailHasRoom", "status": "False"},
        {"type": "UpToDate", "status": "Unknown"},
    ]
    assert reported({"conditions": conditions})[names.CONDITION] == [
        (("slurm", "demo", "Available"), 1.0),
        (("slurm", "demo", "JailHasRoom"), 0.0),
    ]


def test_the_last_backup_is_told_and_whether_it_succeeded():
    """One that never succeeded has no time."""
    stores, watch = make_stores(), SlurmWatch(_nobody, lambda _: None)
    spec = msgspec.Raw(b'{"clusterRef":{"name":"demo"}}')
    for name, status in (
        ("good", {"conditions": [{"type": "Ready", "status": "True"}], "lastBackup": {"time": "1970-01-01T00:01:00Z"}}),
        ("new", {}),
    ):
        stores.backups.put(Custom(ObjectMeta(name=name, namespace="slurm", uid=name), spec=spec, status=status))
    found = {metric: list(samples) for metric, samples in observed(stores, watch, VolumeCapacity(lambda: 0.0))}
    assert found[names.BACKUP_READY] == [(("slurm", "demo", "good"), 1.0), (("slurm", "demo", "new"), 0.0)]
    assert found[names.BACKUP_TIME] == [(("slurm", "demo", "good"), 60.0)]


def test_a_silent_slurmrestd_is_told():
    """Also of a cluster of which nothing is known yet."""
    assert reported({})[names.ANSWERING] == [(("slurm", "demo"), 0.0)]
    assert reported({})[names.CONDITION] == []


@pytest.mark.parametrize(
    ("answer", "sizes"),
    [
        ("ok\n\nroom 1000 400 100 90 2500\n", Sizes(1000, 400, 90, 0.0025)),
        ("ok\njail: the shared root is 96 % full\nroom 1000 40 0 0 2000000\n", Sizes(1000, 40, None, 2.0)),
        ("ok", None),
        ("ok\njail: the shared root is 96 % full, 0 MiB are left", None),
        ("ok\n\nroom \n", None),
        ("", None),
        ("ok\n\nroom -1 1 1 1 1", None),
    ],
)
def test_what_a_worker_says_of_room_is_read(answer, sizes):
    """Of an older image there is nothing to read, and where files have no bound there is no number of them."""
    assert sizes_of(answer) == sizes


async def test_room_is_told_for_each_volume():
    """The shared root and slurmctld's state, until the cluster is gone."""
    pod = Pod(ObjectMeta(name="p"), status=PodStatus(pod_ip="10.0.0.1", conditions=(ConditionView("Ready", "True"),)))

    async def hear(_ip):
        return "ok\n\nroom 1000 400 0 0 2500\n"

    room = VolumeCapacity(lambda: 0.0, hear)
    cluster = Cluster("slurm", "demo", "1", SlurmClusterSpec())
    assert [each.status for each in await room.of_jail(cluster, [pod])] == ["True"]
    assert [each.status for each in await room.of_state(cluster, [pod])] == ["True"]
    said = reported({}, room)
    assert said[names.VOLUME_AVAILABLE] == [(("slurm", "demo", "jail"), 400.0), (("slurm", "demo", "state"), 400.0)]
    assert said[names.VOLUME_LOOK] == [(("slurm", "demo", "jail"), 0.0025), (("slurm", "demo", "state"), 0.0025)]
    assert said[names.VOLUME_FILES] == []
    room.forget(("slurm", "demo"))
    assert reported({}, room)[names.VOLUME_SIZE] == []
