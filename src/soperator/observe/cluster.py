"""Every metric of a Slurm cluster, as its exporter serves them. Names come from nowhere else.

All series have the label `slurm_cluster` too: `cluster` is mostly the Kubernetes cluster's. Times that pass by themselves are told as moments,
so that a scrape between two refreshes is as right as one after.
"""

from soperator.observe.metric import Metric

#: How many users, accounts, partitions and so on have their own series; the others are counted together.
USERS, ACCOUNTS, PARTITIONS, REASONS, FEATURES, GRES, RESERVATIONS, RPCS, CHECKS, VALUES = (
    50, 50, 50, 30, 50, 30, 50, 100, 100, 500,
)  # fmt: skip
NODESETS = 100

NODE_STATES = (
    "allocated", "completing", "down", "drained", "draining", "failing", "future", "idle", "maintenance", "mixed", "not_responding", "planned",
    "powered_down", "powering_down", "powering_up", "rebooting", "reserved", "unknown",
)  # fmt: skip
NODE_FLAGS = (
    "COMPLETING", "DRAIN", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "PLANNED", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP",
    "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED",
)  # fmt: skip
JOB_STATES = (
    "boot_fail", "cancelled", "completed", "completing", "configuring", "deadline", "failed", "node_fail", "other", "out_of_memory", "pending",
    "preempted", "running", "suspended", "timeout",
)  # fmt: skip
#: A job that has ended: which of the states count as such.
ENDED = (
    "boot_fail",
    "cancelled",
    "completed",
    "deadline",
    "failed",
    "node_fail",
    "out_of_memory",
    "preempted",
    "timeout",
)
QUEUED = ("pending", "running", "other")
SHARES = ("allocated", "idle", "powered_down", "unavailable")
WAITS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0)
_HISTOGRAM = len(WAITS) + 3

UP = Metric("slurm_up", "gauge", "Whether Slurm gave every answer of its kind when it was asked last.", ("source",), 5)
REFRESHED = Metric("slurm_refresh_timestamp_seconds", "gauge", "When a source was last read.", ("source",), 5)
REFRESH = Metric(
    "slurm_refresh_duration_seconds", "gauge", "How long the last reading of a source took.", ("source",), 5
)
FAILURES = Metric("slurm_refresh_failures_total", "counter", "Readings of a source that failed.", ("source",), 5)
VERSION = Metric("slurm_info", "gauge", "1, with Slurm's version.", ("version",))

NODES = Metric("slurm_nodes", "gauge", "Slurm nodes, each in one state.", ("state",), len(NODE_STATES))
FLAGS = Metric(
    "slurm_nodes_flagged",
    "gauge",
    "Slurm nodes with a flag; a node may have several.",
    ("flag",),
    len(NODE_FLAGS),
)
OUT = Metric(
    "slurm_nodes_out",
    "gauge",
    "Slurm nodes that get no jobs, by who took them out (check, operator, slurm, person) and why; digits in reasons are #.",
    ("by", "reason"),
    REASONS + 4,
)
HEALTH = Metric("slurm_health_nodes", "gauge", "Slurm nodes by what their checks say.", ("state",), 9)
CHECK_NODES = Metric(
    "slurm_check_nodes", "gauge", "Slurm nodes on which a check does not simply pass.", ("check", "state"), CHECKS
)
FEATURE_NODES = Metric(
    "slurm_feature_nodes",
    "gauge",
    "Slurm nodes with a feature, and whether they take jobs.",
    ("feature", "available"),
    2 * FEATURES + 2,
)
CPUS = Metric(
    "slurm_cpus",
    "gauge",
    "CPUs of all nodes: what no job has is idle, or on nodes that are powered down, or on nodes that take no jobs.",
    ("state",),
    len(SHARES),
)
MEMORY = Metric("slurm_memory_bytes", "gauge", "Memory of all nodes, in the same way.", ("state",), len(SHARES))
GENERIC = Metric("slurm_gres", "gauge", "Generic resources of all nodes, in the same way.", ("gres", "state"), 4 * GRES + 4)  # fmt: skip
PARTITION_NODES = Metric(
    "slurm_partition_nodes",
    "gauge",
    "Slurm nodes of a partition: allocated ones run a job, powered_down ones come when one wants them, unavailable ones take none.",
    ("partition", "state"),
    4 * PARTITIONS + 4,
)
NODESET_NODES = Metric(
    "slurm_nodeset_nodes",
    "gauge",
    "Slurm nodes of a NodeSet, in the same way.",
    ("nodeset", "state"),
    4 * NODESETS + 4,
)
PARTITION_CPUS = Metric("slurm_partition_cpus", "gauge", "CPUs of a partition's nodes.", ("partition", "state"), 4 * PARTITIONS + 4)  # fmt: skip

NODE_STATE = Metric("slurm_node_state", "gauge", "1, with the state of a node.", ("node", "state"), 1, "node")
NODE_HEALTH = Metric("slurm_node_health", "gauge", "1, with what a node's checks say.", ("node", "state"), 1, "node")
NODE_CPUS = Metric("slurm_node_cpus", "gauge", "CPUs of a node.", ("node",), 1, "node")
NODE_CPUS_ALLOCATED = Metric("slurm_node_cpus_allocated", "gauge", "CPUs given to jobs.", ("node",), 1, "node")
NODE_MEMORY = Metric("slurm_node_memory_bytes", "gauge", "Memory of a node.", ("node",), 1, "node")
NODE_MEMORY_ALLOCATED = Metric("slurm_node_memory_allocated_bytes", "gauge", "Memory given to jobs.", ("node",), 1, "node")  # fmt: skip
NODE_GRES = Metric("slurm_node_gres", "gauge", "Generic resources of a node.", ("node", "gres"), 2, "node")
NODE_GRES_ALLOCATED = Metric(
    "slurm_node_gres_allocated", "gauge", "Generic resources given to jobs.", ("node", "gres"), 2, "node"
)
CHECK_VALUE = Metric(
    "slurm_node_check_value",
    "gauge",
    "What a check that does not pass has measured on a node, such as how full the jail is; in the units of its page.",
    ("node", "check", "value"),
    VALUES,
)

PARTITION_UP = Metric("slurm_partition_up", "gauge", "Whether a partition starts jobs.", ("partition",), PARTITIONS)
RESERVATION_NODES = Metric(
    "slurm_reservation_nodes", "gauge", "Nodes of a reservation.", ("reservation",), RESERVATIONS
)
RESERVATION_START = Metric("slurm_reservation_start_timestamp_seconds", "gauge", "When it begins.", ("reservation",), RESERVATIONS)  # fmt: skip
RESERVATION_END = Metric("slurm_reservation_end_timestamp_seconds", "gauge", "When it ends.", ("reservation",), RESERVATIONS)  # fmt: skip

JOBS = Metric(
    "slurm_jobs", "gauge", "Jobs that Slurm knows; each task of an array counts.", ("state",), len(JOB_STATES)
)
PENDING = Metric("slurm_jobs_pending", "gauge", "Jobs that wait, by Slurm's reason.", ("reason",), REASONS + 1)
PARTITION_JOBS = Metric(
    "slurm_partition_jobs",
    "gauge",
    "Jobs in a partition that have not ended; one that names several counts in the first.",
    ("partition", "state"),
    3 * PARTITIONS + 3,
)
PARTITION_WANTED = Metric(
    "slurm_partition_pending_nodes",
    "gauge",
    "Nodes requested by jobs that wait for nodes; each task of an array counts. For an autoscaler.",
    ("partition",),
    PARTITIONS + 1,
)
NODESET_WANTED = Metric(
    "slurm_nodeset_pending_nodes",
    "gauge",
    "The same by NodeSet: a job counts for that one which its constraint names, or else for each of its partitions'.",
    ("nodeset",),
    NODESETS + 1,
)
OLDEST = Metric(
    "slurm_partition_oldest_pending_timestamp_seconds",
    "gauge",
    "Age of the oldest waiting job that could begin.",
    ("partition",),
    PARTITIONS + 1,
)
USER_JOBS = Metric("slurm_user_jobs", "gauge", "Jobs of a user that have not ended.", ("user", "state"), 3 * USERS + 3)
USER_CPUS = Metric("slurm_user_cpus_allocated", "gauge", "CPUs of a user's jobs.", ("user",), USERS + 1)
USER_GPUS = Metric("slurm_user_gpus_allocated", "gauge", "GPUs of a user's jobs.", ("user",), USERS + 1)
ACCOUNT_JOBS = Metric("slurm_account_jobs", "gauge", "Jobs of an account that have not ended.", ("account", "state"), 3 * ACCOUNTS + 3)  # fmt: skip
ACCOUNT_CPUS = Metric("slurm_account_cpus_allocated", "gauge", "CPUs of an account's jobs.", ("account",), ACCOUNTS + 1)
ACCOUNT_GPUS = Metric("slurm_account_gpus_allocated", "gauge", "GPUs of an account's jobs.", ("account",), ACCOUNTS + 1)
WAIT = Metric(
    "slurm_job_wait_seconds",
    "histogram",
    "How long jobs could have begun before they did; counted since the exporter started.",
    ("partition",),
    _HISTOGRAM * (PARTITIONS + 1),
    buckets=WAITS,
)
FINISHED = Metric(
    "slurm_jobs_ended_total", "counter", "Jobs that ended since the exporter started.", ("state",), len(ENDED)
)

CYCLES = Metric("slurm_scheduler_cycles_total", "counter", "Cycles of the main scheduler.")
CYCLE_SECONDS = Metric("slurm_scheduler_cycle_seconds_total", "counter", "Time that they took.")
CYCLE_LAST = Metric("slurm_scheduler_last_cycle_seconds", "gauge", "How long the last of them took.")
CYCLE_DEPTH = Metric("slurm_scheduler_tested_jobs_total", "counter", "Jobs that they looked at.")
QUEUE = Metric("slurm_scheduler_queue_length", "gauge", "Jobs that wait for the main scheduler.")
DONE = Metric("slurm_scheduler_jobs_total", "counter", "Jobs by result; slurmctld resets these counts each day.", ("event",), 5)  # fmt: skip
BACKFILLS = Metric("slurm_backfill_cycles_total", "counter", "Cycles of the backfill scheduler.")
BACKFILL_SECONDS = Metric("slurm_backfill_cycle_seconds_total", "counter", "Time that they took.")
BACKFILL_LAST = Metric("slurm_backfill_last_cycle_seconds", "gauge", "How long the last of them took.")
BACKFILL_WHEN = Metric("slurm_backfill_last_cycle_timestamp_seconds", "gauge", "When it was.")
BACKFILL_JOBS = Metric("slurm_backfill_started_jobs_total", "counter", "Jobs that it started.")
BACKFILL_QUEUE = Metric("slurm_backfill_queue_length", "gauge", "Jobs that wait for it.")
THREADS = Metric("slurm_controller_threads", "gauge", "Threads of slurmctld that serve a request.")
AGENTS = Metric("slurm_controller_agent_queue_length", "gauge", "Messages to nodes that wait to be sent again.")
DBD_QUEUE = Metric("slurm_controller_dbd_queue_length", "gauge", "Records that wait for slurmdbd.")
RPC_COUNT = Metric("slurm_rpcs_total", "counter", "Requests to slurmctld.", ("rpc",), RPCS + 1)
RPC_SECONDS = Metric("slurm_rpc_seconds_total", "counter", "Time that they took.", ("rpc",), RPCS + 1)
USER_RPCS = Metric("slurm_user_rpcs_total", "counter", "Requests to slurmctld by user.", ("user",), USERS + 1)
USER_RPC_SECONDS = Metric("slurm_user_rpc_seconds_total", "counter", "Time that they took.", ("user",), USERS + 1)

METRICS: tuple[Metric, ...] = tuple(each for each in vars().copy().values() if isinstance(each, Metric))
