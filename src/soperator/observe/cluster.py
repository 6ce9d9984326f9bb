"""Every metric of a Slurm cluster, as its exporter serves them. The names are defined only here, so that alerts and dashboards cannot name a
metric that does not exist.

All series also have the label `slurm_cluster`, because `cluster` usually names the Kubernetes cluster. An age is exposed as a timestamp, so that a
scrape between two refreshes is also correct.
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

UP = Metric(
    "slurm_up", "gauge", "1 if the last reading of a source got every answer from Slurm, 0 otherwise.", ("source",), 5
)
REFRESHED = Metric(
    "slurm_refresh_timestamp_seconds",
    "gauge",
    "Time of the last reading of a source, in seconds since 1970.",
    ("source",),
    5,
)
REFRESH = Metric("slurm_refresh_duration_seconds", "gauge", "Duration of the last reading of a source.", ("source",), 5)
FAILURES = Metric("slurm_refresh_failures_total", "counter", "Failed readings of a source.", ("source",), 5)
VERSION = Metric("slurm_info", "gauge", "Always 1; the label version is Slurm's version.", ("version",))

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
    "Slurm nodes that get no jobs, by what drained them (check, operator, slurm, person) and by reason; digits in reasons are replaced with #.",
    ("by", "reason"),
    REASONS + 4,
)
HEALTH = Metric("slurm_health_nodes", "gauge", "Slurm nodes by the state of their health checks.", ("state",), 9)
CHECK_NODES = Metric(
    "slurm_check_nodes",
    "gauge",
    "Slurm nodes by check and its state, without passing checks.",
    ("check", "state"),
    CHECKS,
)
FEATURE_NODES = Metric(
    "slurm_feature_nodes",
    "gauge",
    "Slurm nodes with a feature, by whether they accept jobs.",
    ("feature", "available"),
    2 * FEATURES + 2,
)
CPUS = Metric(
    "slurm_cpus",
    "gauge",
    "CPUs of all nodes: allocated to jobs, idle, on powered-down nodes, or on nodes that accept no jobs.",
    ("state",),
    len(SHARES),
)
MEMORY = Metric(
    "slurm_memory_bytes", "gauge", "Memory of all nodes, by the states of slurm_cpus.", ("state",), len(SHARES)
)
GENERIC = Metric("slurm_gres", "gauge", (
    "Generic resources of all nodes, by the states of slurm_cpus."
), ("gres", "state"), 4 * GRES + 4)  # fmt: skip
PARTITION_NODES = Metric(
    "slurm_partition_nodes",
    "gauge",
    "Slurm nodes of a partition: allocated nodes run a job, powered_down nodes wake for a job, unavailable nodes accept none.",
    ("partition", "state"),
    4 * PARTITIONS + 4,
)
NODESET_NODES = Metric(
    "slurm_nodeset_nodes",
    "gauge",
    "Slurm nodes of a NodeSet, by the states of slurm_partition_nodes.",
    ("nodeset", "state"),
    4 * NODESETS + 4,
)
PARTITION_CPUS = Metric("slurm_partition_cpus", "gauge", "CPUs of a partition's nodes.", ("partition", "state"), 4 * PARTITIONS + 4)  # fmt: skip

NODE_STATE = Metric(
    "slurm_node_state", "gauge", "Always 1; the label state is the state of a node.", ("node", "state"), 1, "node"
)
NODE_HEALTH = Metric(
    "slurm_node_health",
    "gauge",
    ("Always 1; the label state is the state of a node's health checks."),
    ("node", "state"),
    1,
    "node",
)
NODE_CPUS = Metric("slurm_node_cpus", "gauge", "CPUs of a node.", ("node",), 1, "node")
NODE_CPUS_ALLOCATED = Metric(
    "slurm_node_cpus_allocated", "gauge", "CPUs of a node that are allocated to jobs.", ("node",), 1, "node"
)
NODE_MEMORY = Metric("slurm_node_memory_bytes", "gauge", "Memory of a node.", ("node",), 1, "node")
NODE_MEMORY_ALLOCATED = Metric("slurm_node_memory_allocated_bytes", "gauge", (
    "Memory of a node that is allocated to jobs."
), ("node",), 1, "node")  # fmt: skip
NODE_GRES = Metric("slurm_node_gres", "gauge", "Generic resources of a node.", ("node", "gres"), 2, "node")
NODE_GRES_ALLOCATED = Metric(
    "slurm_node_gres_allocated",
    "gauge",
    "Generic resources of a node that are allocated to jobs.",
    ("node", "gres"),
    2,
    "node",
)
CHECK_VALUE = Metric(
    "slurm_node_check_value",
    "gauge",
    "Value that a check measured on a node that does not pass it, such as the used share of the jail; the check's page has the unit.",
    ("node", "check", "value"),
    VALUES,
)

PARTITION_UP = Metric(
    "slurm_partition_up", "gauge", "1 if a partition starts jobs, 0 otherwise.", ("partition",), PARTITIONS
)
RESERVATION_NODES = Metric(
    "slurm_reservation_nodes", "gauge", "Nodes of a reservation.", ("reservation",), RESERVATIONS
)
RESERVATION_START = Metric("slurm_reservation_start_timestamp_seconds", "gauge", (
    "Start of a reservation, in seconds since 1970."
), ("reservation",), RESERVATIONS)  # fmt: skip
RESERVATION_END = Metric("slurm_reservation_end_timestamp_seconds", "gauge", (
    "End of a reservation, in seconds since 1970."
), ("reservation",), RESERVATIONS)  # fmt: skip

JOBS = Metric(
    "slurm_jobs", "gauge", "Jobs that Slurm knows; each task of an array counts.", ("state",), len(JOB_STATES)
)
PENDING = Metric("slurm_jobs_pending", "gauge", "Pending jobs, by Slurm's reason.", ("reason",), REASONS + 1)
PARTITION_JOBS = Metric(
    "slurm_partition_jobs",
    "gauge",
    "Jobs in a partition that have not ended; a job that names several partitions counts in the first.",
    ("partition", "state"),
    3 * PARTITIONS + 3,
)
PARTITION_WANTED = Metric(
    "slurm_partition_pending_nodes",
    "gauge",
    "Nodes that pending jobs of a partition wait for, for an autoscaler; each task of an array counts.",
    ("partition",),
    PARTITIONS + 1,
)
NODESET_WANTED = Metric(
    "slurm_nodeset_pending_nodes",
    "gauge",
    (
        "Nodes that pending jobs wait for, by NodeSet: a job counts for the NodeSet that its constraint names, "
        "otherwise for each NodeSet of its partitions."
    ),
    ("nodeset",),
    NODESETS + 1,
)
OLDEST = Metric(
    "slurm_partition_oldest_pending_timestamp_seconds",
    "gauge",
    "Time since which the oldest pending job that could start has waited, in seconds since 1970.",
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
    "Time from when a job could start until it started, for jobs since the exporter's start.",
    ("partition",),
    _HISTOGRAM * (PARTITIONS + 1),
    buckets=WAITS,
)
FINISHED = Metric(
    "slurm_jobs_ended_total", "counter", "Jobs that ended since the exporter's start.", ("state",), len(ENDED)
)

CYCLES = Metric("slurm_scheduler_cycles_total", "counter", "Cycles of the main scheduler.")
CYCLE_SECONDS = Metric(
    "slurm_scheduler_cycle_seconds_total", "counter", "Total time of the cycles of the main scheduler."
)
CYCLE_LAST = Metric("slurm_scheduler_last_cycle_seconds", "gauge", "Duration of the last cycle.")
CYCLE_DEPTH = Metric(
    "slurm_scheduler_tested_jobs_total", "counter", "Jobs that the main scheduler tested in these cycles."
)
QUEUE = Metric("slurm_scheduler_queue_length", "gauge", "Jobs in the queue of the main scheduler.")
DONE = Metric("slurm_scheduler_jobs_total", "counter", "Jobs by result; slurmctld resets these counts every day.", ("event",), 5)  # fmt: skip
BACKFILLS = Metric("slurm_backfill_cycles_total", "counter", "Cycles of the backfill scheduler.")
BACKFILL_SECONDS = Metric(
    "slurm_backfill_cycle_seconds_total", "counter", "Total time of the cycles of the backfill scheduler."
)
BACKFILL_LAST = Metric("slurm_backfill_last_cycle_seconds", "gauge", "Duration of the last cycle.")
BACKFILL_WHEN = Metric(
    "slurm_backfill_last_cycle_timestamp_seconds", "gauge", "Time of the last backfill cycle, in seconds since 1970."
)
BACKFILL_JOBS = Metric("slurm_backfill_started_jobs_total", "counter", "Jobs that the backfill scheduler started.")
BACKFILL_QUEUE = Metric("slurm_backfill_queue_length", "gauge", "Jobs in the queue of the backfill scheduler.")
THREADS = Metric("slurm_controller_threads", "gauge", "Threads of slurmctld that serve a request.")
AGENTS = Metric("slurm_controller_agent_queue_length", "gauge", "Messages to nodes that slurmctld will send again.")
DBD_QUEUE = Metric("slurm_controller_dbd_queue_length", "gauge", "Records that slurmctld has not sent to slurmdbd yet.")
RPC_COUNT = Metric("slurm_rpcs_total", "counter", "Requests to slurmctld.", ("rpc",), RPCS + 1)
RPC_SECONDS = Metric("slurm_rpc_seconds_total", "counter", "Total time of requests to slurmctld.", ("rpc",), RPCS + 1)
USER_RPCS = Metric("slurm_user_rpcs_total", "counter", "Requests to slurmctld by user.", ("user",), USERS + 1)
USER_RPC_SECONDS = Metric(
    "slurm_user_rpc_seconds_total", "counter", "Total time of requests to slurmctld by user.", ("user",), USERS + 1
)

METRICS: tuple[Metric, ...] = tuple(each for each in vars().copy().values() if isinstance(each, Metric))
