"""Every metric of the resources that single jobs use; each worker serves those of its own jobs (`spec.metrics.jobs`).

They are measured on the node, because Slurm reports them only on request or after a step's end. A series ends with its job. All series also have the
label `slurm_cluster`. A query sums a job over its nodes: `sum by (job_id) (rate(slurm_job_cpu_seconds_total[5m]))`.
"""

from soperator.observe.metric import Metric

#: How many jobs of a node have series of their own; those that began last are counted together.
JOBS = 256
#: How many GPUs a node has at most.
GPUS = 64

CPU = Metric(
    "slurm_job_cpu_seconds_total",
    "counter",
    "CPU time of a job's processes on a node.",
    ("node", "job_id"),
    JOBS + 1,
    "node",
)
MEMORY = Metric(
    "slurm_job_memory_bytes",
    "gauge",
    "Memory of a job's processes on a node; with jobs.limits Cgroup, memory of its cgroup, including the page cache.",
    ("node", "job_id"),
    JOBS + 1,
    "node",
)
PROCESSES = Metric("slurm_job_processes", "gauge", "Processes of a job on a node.", ("node", "job_id"), JOBS + 1, "node")  # fmt: skip
GPU = Metric(
    "slurm_job_gpu",
    "gauge",
    "Always 1; one series for each GPU of a job, with the Node's name of the GPU, to join a job with GPU metrics.",
    ("node", "job_id", "device"),
    GPUS,
    "node",
)
MEASURED = Metric(
    "slurm_job_usage_timestamp_seconds",
    "gauge",
    "Time of the last measurement of a node's jobs, in seconds since 1970.",
    ("node",),
    1,
    "node",
)

METRICS: tuple[Metric, ...] = (CPU, MEMORY, PROCESSES, GPU, MEASURED)
