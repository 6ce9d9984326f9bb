"""The operator's metrics about its clusters, computed from the caches at each scrape."""

from collections.abc import Iterator
from datetime import datetime

from soperator import __version__
from soperator.kube.views import Custom
from soperator.observe import operator as names
from soperator.observe.metric import Metric
from soperator.reconcile.cache.decode import named
from soperator.reconcile.cache.informers import Stores
from soperator.reconcile.cache.slurm_poller import SlurmWatch
from soperator.reconcile.io.volume_capacity import VolumeCapacity
from soperator.runtime.cache.store import key_of
from soperator.runtime.metrics import Samples


def observed(stores: Stores, slurm: SlurmWatch, room: VolumeCapacity) -> Iterator[tuple[Metric, Samples]]:
    """Yield the conditions of clusters, whether their slurmrestd answers, and the free space of their volumes; all from the caches."""
    clusters = stores.clusters.all()
    yield names.INFO, [((__version__,), 1.0)]
    yield names.CONDITION, [sample for each in clusters for sample in _conditions(each)]
    answers = [(key_of(each), slurm.nodes(key_of(each)) is not None) for each in clusters]
    yield names.ANSWERING, [(key, float(answer)) for key, answer in answers]
    volumes = [((*key, of), sizes) for key, of, sizes in room.measured()]
    yield names.VOLUME_SIZE, [(labels, float(sizes.size)) for labels, sizes in volumes]
    yield names.VOLUME_AVAILABLE, [(labels, float(sizes.available)) for labels, sizes in volumes]
    files = [(labels, sizes.files_available) for labels, sizes in volumes]
    yield names.VOLUME_FILES, [(labels, float(many)) for labels, many in files if many is not None]
    yield names.VOLUME_LOOK, [(labels, sizes.look) for labels, sizes in volumes]

    backups = stores.backups.all()
    yield names.BACKUP_READY, [(_of_backup(each), _is_ready(each)) for each in backups]
    times = [(_of_backup(each), str(each.status.get("lastBackup", {}).get("time", ""))) for each in backups]
    yield names.BACKUP_TIME, [(labels, datetime.fromisoformat(time).timestamp()) for labels, time in times if time]


def _of_backup(backup: Custom) -> tuple[str, ...]:
    return backup.metadata.namespace, named(backup), backup.metadata.name


def _is_ready(obj: Custom) -> float:
    ready = (each for each in obj.status.get("conditions", ()) if each.get("type") == "Ready")
    return float(any(each.get("status") == "True" for each in ready))


def _conditions(cluster: Custom) -> Iterator[tuple[tuple[str, ...], float]]:
    for each in cluster.status.get("conditions", ()):
        if each.get("status") in ("True", "False"):
            yield (*key_of(cluster), str(each.get("type"))), float(each["status"] == "True")
