"""Every metric of the operator. The names are defined only here, so that alerts and dashboards cannot name a metric that does not exist."""

from soperator.observe.metric import Metric

_PASS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_OF_CLUSTER = ("slurm_cluster_namespace", "slurm_cluster")

INFO = Metric("soperator_info", "gauge", "1, with the operator's version.", ("version",))
LEADER = Metric("soperator_leader", "gauge", "1 in the replica that leads, 0 in the others.")
PASSES = Metric("soperator_passes_total", "counter", "Passes by result: ok, failed or terminal.", ("controller", "result"), 9)  # fmt: skip
PASS_SECONDS = Metric(
    "soperator_pass_seconds",
    "histogram",
    "How long passes took.",
    ("controller",),
    3 * (len(_PASS) + 3),
    buckets=_PASS,
)
DEPTH = Metric("soperator_queue_depth", "gauge", "Keys in the workqueue that wait for a worker.", ("controller",), 3)
ACTIVE = Metric("soperator_queue_active", "gauge", "Keys being worked on.", ("controller",), 3)
WAITING = Metric("soperator_queue_waiting", "gauge", "Keys that wait for their requeue time.", ("controller",), 3)
FAILING = Metric(
    "soperator_queue_failing", "gauge", "Keys of the workqueue whose last pass failed.", ("controller",), 3
)
REQUESTS = Metric(
    "soperator_api_requests_total",
    "counter",
    "Requests to the API server; code 0 had no answer.",
    ("verb", "kind", "code"),
    0,
)
STORED = Metric("soperator_store_objects", "gauge", "Objects in each cache.", ("kind",), 16)
SYNCED = Metric(
    "soperator_store_synced", "gauge", "1 if a cache has been filled since the start, 0 otherwise.", ("kind",), 16
)
AGE = Metric(
    "soperator_store_age_seconds",
    "gauge",
    "Time since the last message of the API server to a cache's watch; up to 180 in an idle cluster. Above 300 the replica is not ready.",
    ("kind",),
    16,
)
RELISTS = Metric("soperator_relists_total", "counter", "Full lists read from the API server, by cache.", ("kind",), 16)
CONDITION = Metric(
    "soperator_cluster_condition",
    "gauge",
    "1 if a condition of a SlurmCluster is True, such as Available or JailHasRoom, 0 if False; an Unknown condition has no series.",
    (*_OF_CLUSTER, "condition"),
    0,
)
ANSWERING = Metric(
    "soperator_slurm_answering",
    "gauge",
    "1 if a cluster's slurmrestd recently answered the operator, 0 otherwise; without an answer every node counts as busy.",
    _OF_CLUSTER,
    0,
)
_OF_VOLUME = (*_OF_CLUSTER, "volume")
VOLUME_SIZE = Metric(
    "soperator_volume_size_bytes", "gauge", "Size of the volume of a cluster's shared root (jail) or of slurmctld's state (state).", _OF_VOLUME, 0
)  # fmt: skip
VOLUME_AVAILABLE = Metric("soperator_volume_available_bytes", "gauge", (
    "Bytes of the volume that users without privileges can still write."
), _OF_VOLUME, 0)  # fmt: skip
VOLUME_FILES = Metric(
    "soperator_volume_available_files", "gauge", (
        "Files that can still be created on the volume; absent if the file system has no limit."
    ), _OF_VOLUME, 0
)  # fmt: skip
VOLUME_LOOK = Metric(
    "soperator_volume_look_seconds", "gauge", "Duration of the last probe of the volume and of every mount in it, in one pod.", _OF_VOLUME, 0
)  # fmt: skip

_OF_BACKUP = (*_OF_CLUSTER, "backup")
BACKUP_READY = Metric("soperator_backup_ready", "gauge", "1 if a SlurmBackup is Ready: its last backup succeeded.", _OF_BACKUP, 0)  # fmt: skip
BACKUP_TIME = Metric(
    "soperator_backup_last_success_timestamp_seconds",
    "gauge",
    "When the last successful backup of a SlurmBackup began, in seconds since 1970; absent if there was none.",
    _OF_BACKUP,
    0,
)

METRICS: tuple[Metric, ...] = tuple(each for each in vars().copy().values() if isinstance(each, Metric))
