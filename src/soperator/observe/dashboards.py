"""The six dashboards for Grafana, as data. Each has only the panels that an engineer on call needs. `make crds` writes them into the chart, so
that their queries use the metrics' own names.
"""

from soperator.observe.panel import Dashboard, Panel, stat

CLUSTER = Dashboard(
    "cluster",
    "Slurm: cluster",
    "Start here: availability, utilization and pending jobs of the cluster.",
    (
        stat("Slurm answers", 'min(slurm_up{<of>,source=~"nodes|diag"})', (0, "red"), (1, "green"), alerts=("SlurmNotAnswering",)),
        stat(
            "Read ago",
            'time() - min(slurm_refresh_timestamp_seconds{<of>,source=~"nodes|jobs|diag"})',
            (0, "green"), (600, "orange"), (1800, "red"),
            alerts=("SlurmMetricsOld",), unit="s", about="Age of the oldest answer of Slurm on this page.",
        ),
        stat("Nodes down", 'sum(slurm_nodes{<of>,state=~"down|not_responding|failing"})', (0, "green"), (1, "red"), alerts=("SlurmNodesDown",)),
        stat(
            "Nodes that accept no jobs", "sum(slurm_nodes_out{<of>}) or vector(0)", (0, "green"), (1, "orange"),
            alerts=("SlurmManyNodesOut", "SlurmNodesLeftOut"),
        ),
        stat(
            "Bad nodes in service", 'sum(slurm_health_nodes{<of>,state="Failing"})', (0, "green"), (1, "red"),
            alerts=("SlurmDrainBudgetReached",), about="These nodes fail a check, and jobs may still start on them.",
        ),
        stat(
            "Longest wait",
            "time() - min(slurm_partition_oldest_pending_timestamp_seconds{<of>} > 0) or vector(0)",
            (0, "green"), (86400, "orange"),
            alerts=("SlurmQueueStuck",), unit="s", about="Longest wait of a job that could start if resources were free.",
        ),
        Panel(
            "Alerts that fire",
            {"": 'max by (alertname, severity, namespace, slurm_cluster) (ALERTS{alertstate="firing",alertname=~"(Slurm|Soperator).+"})'},
            "table", width=12, quiet="no alert fires while everything works",
        ),
        Panel("Why jobs wait", {"{{reason}}": "sum by (reason) (slurm_jobs_pending{<of>}) > 0"}, stacked=True, width=12, alerts=("SlurmQueueStuck",)),
        Panel("CPUs", {"{{state}}": "sum by (state) (slurm_cpus{<of>})"}, stacked=True),
        Panel(
            "GPUs", {"{{state}}": 'sum by (state) (slurm_gres{<of>,gres=~"gpu(:.*)?"})'},
            stacked=True, quiet="the cluster has no GPUs",
        ),
        Panel("Memory", {"{{state}}": "sum by (state) (slurm_memory_bytes{<of>})"}, unit="bytes", stacked=True),
        Panel("Nodes by state", {"{{state}}": "sum by (state) (slurm_nodes{<of>}) > 0"}, stacked=True, alerts=("SlurmNodesDown",)),
        Panel("Jobs by state", {"{{state}}": 'sum by (state) (slurm_jobs{<of>,state=~"pending|running|completing|suspended"})'}, stacked=True),
        Panel("Jobs ended per hour", {"{{state}}": "sum by (state) (increase(slurm_jobs_ended_total{<of>}[1h]))"}, alerts=("SlurmJobsLoseNodes",)),
    ),
)  # fmt: skip

NODES = Dashboard(
    "nodes",
    "Slurm: nodes",
    "The nodes that get no jobs, with the cause, and the states of the others.",
    (
        Panel(
            "Nodes that get no jobs, by source and reason", {"": "sum by (by, reason) (slurm_nodes_out{<of>})"}, "table",
            about="check: a health check; operator: a rollout, a scale-in or a broken jail; slurm: slurmctld itself; person: an administrator.",
            alerts=("SlurmManyNodesOut", "SlurmNodesLeftOut"), width=12, quiet="all nodes take jobs",
        ),
        Panel(
            "Nodes with failing checks",
            {"": 'max by (node, state) (slurm_node_state{<of>,state!~"idle|allocated|mixed|completing|planned|reserved|powered_down"})'},
            "table", alerts=("SlurmNodesDown",), width=12, quiet="all nodes are well",
        ),
        Panel("Nodes by state", {"{{state}}": "sum by (state) (slurm_nodes{<of>}) > 0"}, stacked=True, width=12),
        Panel(
            "Power, reboots and reservations",
            {"{{flag}}": 'sum by (flag) (slurm_nodes_flagged{<of>,flag=~"POWER.*|REBOOT.*|RESERVED|MAINTENANCE"})'},
            width=12,
        ),
        Panel("Partitions: nodes", {"{{partition}} {{state}}": "sum by (partition, state) (slurm_partition_nodes{<of>})"}, stacked=True, width=12),
        Panel("Features: nodes that accept jobs", {"{{feature}}": 'sum by (feature) (slurm_feature_nodes{<of>,available="yes"})'}, width=12),
        Panel(
            "CPUs allocated to jobs, by node", {"{{node}}": "topk(20, slurm_node_cpus_allocated{<of>} / slurm_node_cpus{<of>})"},
            unit="percentunit", width=12,
        ),
        Panel(
            "Memory allocated to jobs, by node", {"{{node}}": "topk(20, slurm_node_memory_allocated_bytes{<of>} / slurm_node_memory_bytes{<of>})"},
            unit="percentunit", width=12,
        ),
        Panel(
            "Generic resources", {"{{gres}} {{state}}": "sum by (gres, state) (slurm_gres{<of>})"},
            stacked=True, width=12, quiet="no node has generic resources",
        ),
        Panel(
            "Reservations: when they end", {"": "max by (reservation) (slurm_reservation_end_timestamp_seconds{<of>}) * 1000"},
            "table", unit="dateTimeAsIso", width=12, quiet="there is no reservation",
        ),
    ),
)  # fmt: skip

JOBS = Dashboard(
    "jobs",
    "Slurm: jobs",
    "Running and pending jobs by user, account and partition, with their wait. Names beyond the limit count as `other`.",
    (
        Panel("Running jobs by user", {"{{user}}": 'topk(10, sum by (user) (slurm_user_jobs{<of>,state="running"}))'}, stacked=True),
        Panel("CPUs by user", {"{{user}}": "topk(10, sum by (user) (slurm_user_cpus_allocated{<of>}))"}, stacked=True),
        Panel("GPUs by user", {"{{user}}": "topk(10, sum by (user) (slurm_user_gpus_allocated{<of>}))"}, stacked=True),
        Panel("CPUs by account", {"{{account}}": "topk(10, sum by (account) (slurm_account_cpus_allocated{<of>}))"}, stacked=True),
        Panel("GPUs by account", {"{{account}}": "topk(10, sum by (account) (slurm_account_gpus_allocated{<of>}))"}, stacked=True),
        Panel("Waiting jobs by account", {"{{account}}": 'topk(10, sum by (account) (slurm_account_jobs{<of>,state="pending"}))'}, stacked=True),
        Panel("Jobs by partition", {"{{partition}} {{state}}": "sum by (partition, state) (slurm_partition_jobs{<of>})"}, stacked=True),
        Panel("Why jobs wait", {"{{reason}}": "sum by (reason) (slurm_jobs_pending{<of>})"}, stacked=True, alerts=("SlurmQueueStuck",)),
        Panel(
            "Longest wait by partition",
            {"{{partition}}": "time() - max by (partition) (slurm_partition_oldest_pending_timestamp_seconds{<of>} > 0)"},
            unit="s", alerts=("SlurmQueueStuck",), quiet="no job that could start is pending",
        ),
        Panel(
            "Wait of the jobs that started in the last hour",
            {
                "median, at most": "histogram_quantile(0.5, sum by (le) (increase(slurm_job_wait_seconds_bucket{<of>}[1h])))",
                "90th percentile, at most": "histogram_quantile(0.9, sum by (le) (increase(slurm_job_wait_seconds_bucket{<of>}[1h])))",
            },
            unit="s", width=12,
        ),
        Panel(
            "Jobs ended per hour", {"{{state}}": "sum by (state) (increase(slurm_jobs_ended_total{<of>}[1h]))"},
            width=12, alerts=("SlurmJobsLoseNodes",),
        ),
    ),
)  # fmt: skip

HEALTH = Dashboard(
    "health",
    "Slurm: health",
    "Health checks of the nodes, and the space and latency of the shared root.",
    (
        Panel(
            "Nodes by health", {"{{state}}": "sum by (state) (slurm_health_nodes{<of>}) > 0"},
            stacked=True, alerts=("SlurmDrainBudgetReached",), width=12,
        ),
        Panel(
            "Checks that do not pass", {"": "sum by (check, state) (slurm_check_nodes{<of>})"}, "table", width=12,
            alerts=("SlurmDrainBudgetReached", "SlurmChecksSilent", "SlurmDiskFull", "SlurmJailSlow"), quiet="all checks pass",
        ),
        Panel(
            "Nodes drained by checks", {"{{reason}}": 'sum by (reason) (slurm_nodes_out{<of>,by="check"})'},
            stacked=True, width=12, quiet="no check has drained a node",
        ),
        Panel(
            "Values that failing checks measured", {"": "max by (node, check, value) (slurm_node_check_value{<of>})"}, "table", width=12,
            alerts=("SlurmDiskFull", "SlurmJailSlow"), quiet="all checks pass",
        ),
        Panel(
            "Volumes: used share",
            {
                "{{slurm_cluster}} {{volume}}": "1 - max by (slurm_cluster, volume) (soperator_volume_available_bytes{<by>})"
                " / max by (slurm_cluster, volume) (soperator_volume_size_bytes{<by>})",
            },
            unit="percentunit", alerts=("SoperatorVolumeAlmostFull", "SlurmDiskFull"), limits=((0, "green"), (0.9, "orange"), (0.95, "red")),
            about="jail: the shared root; state: the state of slurmctld. A full volume stops all users.",
        ),
        Panel(
            "Volumes: free inodes",
            {"{{slurm_cluster}} {{volume}}": "max by (slurm_cluster, volume) (soperator_volume_available_files{<by>})"},
            alerts=("SlurmDiskFull",),
        ),
        Panel(
            "Volumes: time of a probe",
            {"{{slurm_cluster}} {{volume}}": "max by (slurm_cluster, volume) (soperator_volume_look_seconds{<by>})"},
            unit="s", alerts=("SlurmJailSlow",), limits=((0, "green"), (1, "orange"), (5, "red")),
            about="A probe touches every mount of a node's plan on one worker, so a slow machine also raises it.",
        ),
    ),
)  # fmt: skip

CONTROLLER = Dashboard(
    "controller",
    "Slurm: controller",
    "The activity and load of slurmctld, and whether it and slurmrestd answer.",
    (
        stat("Slurm answers", "min(slurm_up{<of>})", (0, "red"), (1, "green"), alerts=("SlurmNotAnswering",)),
        stat("Threads in use", "sum(slurm_controller_threads{<of>})", (0, "green"), (128, "orange"), alerts=("SlurmUserAsksTooOften",)),
        stat("Messages to send again", "sum(slurm_controller_agent_queue_length{<of>})", (0, "green"), (100, "orange")),
        stat("Records for slurmdbd", "sum(slurm_controller_dbd_queue_length{<of>})", (0, "green"), (1000, "red"), alerts=("SlurmDatabaseLag",)),
        stat("Backfill queue", "sum(slurm_backfill_queue_length{<of>})", alerts=("SlurmBackfillStopped",), unit="jobs"),
        Panel("Slurm", {"{{version}}": "max by (slurm_cluster, version) (slurm_info{<of>})"}, "table", width=4),
        Panel(
            "Time of a scheduler cycle",
            {
                "{{slurm_cluster}} main": "rate(slurm_scheduler_cycle_seconds_total{<of>}[<t>])"
                " / rate(slurm_scheduler_cycles_total{<of>}[<t>])",
                "{{slurm_cluster}} backfill, last cycle": "slurm_backfill_last_cycle_seconds{<of>}",
            },
            unit="s", alerts=("SlurmSchedulerSlow", "SlurmBackfillStopped"),
        ),
        Panel(
            "Cycles per minute",
            {
                "{{slurm_cluster}} main": "60 * rate(slurm_scheduler_cycles_total{<of>}[<t>])",
                "{{slurm_cluster}} backfill": "60 * rate(slurm_backfill_cycles_total{<of>}[<t>])",
            },
            alerts=("SlurmBackfillStopped",),
        ),
        Panel(
            "Jobs started per minute",
            {
                "all": '60 * sum(rate(slurm_scheduler_jobs_total{<of>,event="started"}[<t>]))',
                "by backfill": "60 * sum(rate(slurm_backfill_started_jobs_total{<of>}[<t>]))",
            },
            alerts=("SlurmQueueStuck",),
        ),
        Panel("Requests per second, by kind", {"{{rpc}}": "topk(10, sum by (rpc) (rate(slurm_rpcs_total{<of>}[<t>])))"}, stacked=True),
        Panel(
            "Time share of requests, by kind", {"{{rpc}}": "topk(10, sum by (rpc) (rate(slurm_rpc_seconds_total{<of>}[<t>])))"},
            unit="percentunit", stacked=True, about="Share of each second that slurmctld spends on a kind of request.",
        ),
        Panel(
            "Requests per second, by user", {"{{user}}": "topk(10, sum by (user) (rate(slurm_user_rpcs_total{<of>}[<t>])))"},
            stacked=True, alerts=("SlurmUserAsksTooOften",),
        ),
        Panel(
            "Time of slurmrestd's answers", {"{{source}}": "max by (source) (slurm_refresh_duration_seconds{<of>})"},
            unit="s", alerts=("SlurmMetricsOld",), width=12,
        ),
        Panel(
            "Failed readings per hour", {"{{source}}": "sum by (source) (increase(slurm_refresh_failures_total{<of>}[1h]))"},
            alerts=("SlurmNotAnswering",), width=12,
        ),
    ),
)  # fmt: skip

OPERATOR = Dashboard(
    "operator",
    "Soperator: operator",
    "Whether one operator leads and its passes succeed, its load on the API server, and the conditions of the clusters.",
    (
        stat("Leaders", "sum(soperator_leader) or vector(0)", (0, "red"), (1, "green"), (2, "red"), alerts=("SoperatorNotLeading",)),
        stat(
            "Objects whose passes fail", "sum(max by (controller) (soperator_queue_failing))",
            (0, "green"), (1, "red"), alerts=("SoperatorPassesFail",),
        ),
        stat(
            "Objects waiting for a pass", "sum(max by (controller) (soperator_queue_depth))",
            (0, "green"), (50, "orange"), alerts=("SoperatorBehind",),
        ),
        stat(
            "Clusters not available", 'count(soperator_cluster_condition{<by>,condition="Available"} == 0) or vector(0)',
            (0, "green"), (1, "red"), alerts=("SoperatorClusterNotAvailable",),
        ),
        stat(
            "Clusters whose Slurm does not answer", "count(soperator_slurm_answering{<by>} == 0) or vector(0)",
            (0, "green"), (1, "red"), alerts=("SoperatorSlurmSilent",),
        ),
        Panel("Version", {"": "max by (version) (soperator_info)"}, "table", width=4),
        Panel(
            "Conditions that are False",
            {"": "max by (slurm_cluster_namespace, slurm_cluster, condition) (soperator_cluster_condition{<by>}) == 0"},
            "table", width=12, alerts=("SoperatorClusterNotAvailable", "SoperatorMetricsMissing", "SoperatorVolumeAlmostFull"),
            about="`kubectl get slurmcluster -o yaml` shows each condition with its reason.",
            quiet="every condition holds",
        ),
        Panel(
            "Age of the last successful backup",
            {
                "{{slurm_cluster}} {{backup}}":
                "time() - max by (slurm_cluster_namespace, slurm_cluster, backup) (soperator_backup_last_success_timestamp_seconds{<by>})"
            },
            unit="s", width=12, alerts=("SoperatorBackupFails",),
            about="`kubectl get slurmbackup` has the last backup of each cluster, and why one failed.",
            quiet="no SlurmBackup has made a backup",
        ),
        Panel(
            "Passes per minute", {"{{controller}} {{result}}": "60 * sum by (controller, result) (rate(soperator_passes_total[<t>]))"},
            width=12, alerts=("SoperatorPassesFail",),
        ),
        Panel(
            "90th percentile of a pass's duration",
            {"{{controller}}": "histogram_quantile(0.9, sum by (controller, le) (rate(soperator_pass_seconds_bucket[<t>])))"},
            unit="s", alerts=("SoperatorBehind",),
        ),
        Panel("API requests per second, by code", {"{{code}}": "sum by (code) (rate(soperator_api_requests_total[<t>]))"}, stacked=True),
        Panel("Objects in caches", {"{{kind}}": "max by (kind) (soperator_store_objects)"}, about=(
            "Kubernetes objects that the operator keeps in memory."
        )),
        Panel("Keys being processed, and keys waiting for their requeue time", {
            "{{controller}} in work": "max by (controller) (soperator_queue_active)",
            "{{controller}} wait": "max by (controller) (soperator_queue_waiting)",
        }),
        Panel(
            "Full lists per hour", {"{{kind}}": "sum by (kind) (increase(soperator_relists_total[1h]))"},
            about="More than two per hour and kind mean that its watch breaks.",
        ),
        Panel(
            "CPU and memory",
            {
                "{{pod}} CPUs": "rate(process_cpu_seconds_total{job=~\".*soperator.*\"}[<t>])",
                "{{pod}} GiB": "process_resident_memory_bytes{job=~\".*soperator.*\"} / 2^30",
            },
        ),
    ),
)  # fmt: skip

DASHBOARDS: tuple[Dashboard, ...] = (CLUSTER, NODES, JOBS, HEALTH, CONTROLLER, OPERATOR)
