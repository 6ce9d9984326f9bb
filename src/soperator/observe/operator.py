"""Every metric of the operator. Names come from nowhere else."""

from soperator.observe.metric import Metric

_PASS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_OF_CLUSTER = ("slurm_cluster_namespace", "slurm_cluster")

INFO = Metric("soperator_info", "gauge", "1, with the operator's version.", ("version",))
LEADER = Metric("soperator_leader", "gauge", "1 in the replica that leads.")
PASSES = Metric("soperator_passes_total", "counter", "Passes by result: ok, failed or terminal.", ("controller", "result"), 9)  # fmt: skip
PASS_SECONDS = Metric(
    "soperator_pass_seconds",
    "histogram",
    "How long passes took.",
    ("controller",),
    3 * (len(_PASS) + 3),
    buckets=_PASS,
)
DEPTH = Metric("soperator_queue_depth", "gauge", "Keys that wait for a worker.", ("controller",), 3)
ACTIVE = Metric("soperator_queue_active", "gauge", "Keys being worked on.", ("controller",), 3)
WAITING = Metric("soperator_queue_waiting", "gauge", "Keys that wait for their time.", ("controller",), 3)
FAILING = Metric("soperator_queue_failing", "gauge", "Keys whose last pass failed.", ("controller",), 3)
REQUESTS = Metric(
    "soperator_api_requests_total",
    "counter",
    "Requests to the API server; code 0 had no answer.",
    ("verb", "kind", "code"),
    0,
)
STORED = Metric("soperator_store_objects", "gauge", "Objects in each cache.", ("kind",), 16)
SYNCED = Metric("soperator_store_synced", "gauge", "Whether a cache has been whole once.", ("kind",), 16)
AGE = Metric(
    "soperator_store_age_seconds",
    "gauge",
    "How long ago the API server last said anything about what a cache keeps; up to 180 in a quiet cluster. Above 300 the replica is not ready.",
    ("kind",),
    16,
)
RELISTS = Metric("soperator_relists_total", "counter", "Whole lists read, by cache.", ("kind",), 16)
CONDITION = Metric(
    "soperator_cluster_condition",
    "gauge",
    "Whether a condition of a SlurmCluster is True, such as Available or JailHasRoom; one that is Unknown has no series.",
    (*_OF_CLUSTER, "condition"),
    0,
)
ANSWERING = Metric(
    "soperator_slurm_answering",
    "gauge",
    "Whether a cluster's slurmrestd answered the operator lately; without an answer every node counts as busy.",
    _OF_CLUSTER,
    0,
)
_OF_VOLUME = (*_OF_CLUSTER, "volume")
VOLUME_SIZE = Metric(
    "soperator_volume_size_bytes", "gauge", "Size of a cluster's shared root (jail), or of what holds slurmctld's state (state).", _OF_VOLUME, 0
)  # fmt: skip
VOLUME_AVAILABLE = Metric("soperator_volume_available_bytes", "gauge", "What ordinary users can still write there.", _OF_VOLUME, 0)  # fmt: skip
VOLUME_FILES = Metric(
    "soperator_volume_available_files", "gauge", "Files that can still be created there; absent where the file system has no bound.", _OF_VOLUME, 0
)  # fmt: skip
VOLUME_LOOK = Metric(
    "soperator_volume_look_seconds", "gauge", "How long a look at it and at every mount in it took, in the pod that was asked last.", _OF_VOLUME, 0
)  # fmt: skip

METRICS: tuple[Metric, ...] = tuple(each for each in vars().copy().values() if isinstance(each, Metric))
