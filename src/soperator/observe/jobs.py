"""Every metric of what single jobs use, as each worker serves them of its own jobs (`spec.metrics.jobs`).

They are measured on the node, for Slurm knows them only while it is asked, or after a step's end. Series go away with their job. All have the label
`slurm_cluster` too; a job of several nodes is summed over them: `sum by (job_id) (rate(slurm_job_cpu_seconds_total[5m]))`.
"""

from soperator.observe.metric import Metric

#: How many jobs of a node have series of their own; those that began last are counted together.
JOBS = 256
#: How many GPUs a node has at most.
GPUS = 64

CPU = Metric(
    "slurm_job_cpu_seconds_total",
    "counter",
    "Time on CPUs that a job's processes on a node took.",
    ("node", "job_id"),
    JOBS + 1,
    "node",
)
MEMORY = Metric(
    "slurm_job_memory_bytes",
    "gauge",
    "Memory of a job's processes on a node; with jobs.limits Cgroup that of its cgroup, files in the page cache included.",
    ("node", "job_id"),
    JOBS + 1,
    "node",
)
PROCESSES = Metric("slurm_job_processes", "gauge", "Processes of a job on a node.", ("node", "job_id"), JOBS + 1, "node")  # fmt: skip
GPU = Metric(
    "slurm_job_gpu",
    "gauge",
    "1 for each GPU of a job, with the Node's name for it: joins a job to the metrics of its GPUs.",
    ("node", "job_id", "device"),
    GPUS,
    "node",
)
MEASURED = Metric(
    "slurm_job_usage_timestamp_seconds", "gauge", "When a node's jobs were last measured.", ("node",), 1, "node"
)

METRICS: tuple[Metric, ...] = (CPU, MEMORY, PROCESSES, GPU, MEASURED)
