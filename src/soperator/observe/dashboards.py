"""The dashboards for Grafana, as data: six, each with the few panels that somebody wants who was woken up. `make crds` writes them into the chart."""

from soperator.observe.panel import Dashboard, Panel, stat

CLUSTER = Dashboard(
    "cluster",
    "Slurm: cluster",
    "Is it up, is it full, and who waits. Begin here.",
    (
        stat("Slurm answers", 'min(slurm_up{<of>,source=~"nodes|diag"})', (0, "red"), (1, "green"), alerts=("SlurmNotAnswering",)),
        stat(
            "Read ago",
            'time() - min(slurm_refresh_timestamp_seconds{<of>,source=~"nodes|jobs|diag"})',
            (0, "green"), (600, "orange"), (1800, "red"),
            alerts=("SlurmMetricsOld",), unit="s", about="How old the oldest answer is of which this page tells.",
        ),
        stat("Nodes down", 'sum(slurm_nodes{<of>,state=~"down|not_responding|failing"})', (0, "green"), (1, "red"), alerts=("SlurmNodesDown",)),
        stat(
            "Nodes that take no jobs", "sum(slurm_nodes_out{<of>}) or vector(0)", (0, "green"), (1, "orange"),
            alerts=("SlurmManyNodesOut", "SlurmNodesLeftOut"),
        ),
        stat(
            "Bad nodes in service", 'sum(slurm_health_nodes{<of>,state="Failing"})', (0, "green"), (1, "red"),
            alerts=("SlurmDrainBudgetReached",), about="They fail a check, and jobs may still begin on them.",
        ),
        stat(
            "Longest wait",
            "time() - min(slurm_partition_oldest_pending_timestamp_seconds{<of>} > 0) or vector(0)",
            (0, "green"), (86400, "orange"),
            alerts=("SlurmQueueStuck",), unit="s", about="Of the jobs that could begin if there were room.",
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
            stacked=True, quiet="a cluster without GPUs has none",
        ),
        Panel("Memory", {"{{state}}": "sum by (state) (slurm_memory_bytes{<of>})"}, unit="bytes", stacked=True),
        Panel("Nodes by state", {"{{state}}": "sum by (state) (slurm_nodes{<of>}) > 0"}, stacked=True, alerts=("SlurmNodesDown",)),
        Panel("Jobs by state", {"{{state}}": 'sum by (state) (slurm_jobs{<of>,state=~"pending|running|completing|suspended"})'}, stacked=True),
        Panel("Jobs that end, an hour", {"{{state}}": "sum by (state) (increase(slurm_jobs_ended_total{<of>}[1h]))"}, alerts=("SlurmJobsLoseNodes",)),
    ),
)  # fmt: skip

NODES = Dashboard(
    "nodes",
    "Slurm: nodes",
    "Which nodes are out, who took them out, and what the others do.",
    (
        Panel(
            "Nodes that get no jobs, by whom and why", {"": "sum by (by, reason) (slurm_nodes_out{<of>})"}, "table",
            about="check: a health check; operator: a rollout, a scale-in or a sick jail; slurm: slurmctld itself; person: somebody.",
            alerts=("SlurmManyNodesOut", "SlurmNodesLeftOut"), width=12, quiet="all nodes take jobs",
        ),
        Panel(
            "Nodes that are not well",
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
        Panel("Features: nodes that take jobs", {"{{feature}}": 'sum by (feature) (slurm_feature_nodes{<of>,available="yes"})'}, width=12),
        Panel(
            "CPUs given to jobs, by node", {"{{node}}": "topk(20, slurm_node_cpus_allocated{<of>} / slurm_node_cpus{<of>})"},
            unit="percentunit", width=12,
        ),
        Panel(
            "Memory given to jobs, by node", {"{{node}}": "topk(20, slurm_node_memory_allocated_bytes{<of>} / slurm_node_memory_bytes{<of>})"},
            unit="percentunit", width=12,
        ),
        Panel(
            "Generic resources", {"{{gres}} {{state}}": "sum by (gres, state) (slurm_gres{<of>})"},
            stacked=True, width=12, quiet="nodes without generic resources have none",
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
    "Who runs what, who waits for what, and how long. Names beyond the bound are counted as `other`.",
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
            unit="s", alerts=("SlurmQueueStuck",), quiet="no job that could begin waits",
        ),
        Panel(
            "How long jobs waited that began in the last hour",
            {
                "half of them, less than": "histogram_quantile(0.5, sum by (le) (increase(slurm_job_wait_seconds_bucket{<of>}[1h])))",
                "nine in ten, less than": "histogram_quantile(0.9, sum by (le) (increase(slurm_job_wait_seconds_bucket{<of>}[1h])))",
            },
            unit="s", width=12,
        ),
        Panel(
            "Jobs that end, an hour", {"{{state}}": "sum by (state) (increase(slurm_jobs_ended_total{<of>}[1h]))"},
            width=12, alerts=("SlurmJobsLoseNodes",),
        ),
    ),
)  # fmt: skip

HEALTH = Dashboard(
    "health",
    "Slurm: health",
    "What checks say of machines, and whether the shared root has room and answers.",
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
            "Nodes out for their checks", {"{{reason}}": 'sum by (reason) (slurm_nodes_out{<of>,by="check"})'},
            stacked=True, width=12, quiet="no check has drained a node",
        ),
        Panel(
            "What failing checks measured", {"": "max by (node, check, value) (slurm_node_check_value{<of>})"}, "table", width=12,
            alerts=("SlurmDiskFull", "SlurmJailSlow"), quiet="all checks pass",
        ),
        Panel(
            "Volumes: how full",
            {
                "{{slurm_cluster}} {{volume}}": "1 - max by (slurm_cluster, volume) (soperator_volume_available_bytes{<by>})"
                " / max by (slurm_cluster, volume) (soperator_volume_size_bytes{<by>})",
            },
            unit="percentunit", alerts=("SoperatorVolumeAlmostFull", "SlurmDiskFull"), limits=((0, "green"), (0.9, "orange"), (0.95, "red")),
            about="jail: the shared root; state: what slurmctld keeps. A full one stops everybody.",
        ),
        Panel(
            "Volumes: files that are still possible",
            {"{{slurm_cluster}} {{volume}}": "max by (slurm_cluster, volume) (soperator_volume_available_files{<by>})"},
            alerts=("SlurmDiskFull",),
        ),
        Panel(
            "Volumes: how long a look takes",
            {"{{slurm_cluster}} {{volume}}": "max by (slurm_cluster, volume) (soperator_volume_look_seconds{<by>})"},
            unit="s", alerts=("SlurmJailSlow",), limits=((0, "green"), (1, "orange"), (5, "red")),
            about="A look touches every mount of a node's plan, on the worker that is asked, so a slow machine shows too.",
        ),
    ),
)  # fmt: skip

CONTROLLER = Dashboard(
    "controller",
    "Slurm: controller",
    "What slurmctld does, what keeps it busy, and whether it and slurmrestd answer.",
    (
        stat("Slurm answers", "min(slurm_up{<of>})", (0, "red"), (1, "green"), alerts=("SlurmNotAnswering",)),
        stat("Threads in use", "sum(slurm_controller_threads{<of>})", (0, "green"), (128, "orange"), alerts=("SlurmUserAsksTooOften",)),
        stat("Messages to nodes that wait", "sum(slurm_controller_agent_queue_length{<of>})", (0, "green"), (100, "orange")),
        stat("Records for slurmdbd", "sum(slurm_controller_dbd_queue_length{<of>})", (0, "green"), (1000, "red"), alerts=("SlurmDatabaseLag",)),
        stat("Backfill waits for", "sum(slurm_backfill_queue_length{<of>})", alerts=("SlurmBackfillStopped",), unit="jobs"),
        Panel("Slurm", {"{{version}}": "max by (slurm_cluster, version) (slurm_info{<of>})"}, "table", width=4),
        Panel(
            "A cycle of the scheduler takes",
            {
                "{{slurm_cluster}} main": "rate(slurm_scheduler_cycle_seconds_total{<of>}[<t>])"
                " / rate(slurm_scheduler_cycles_total{<of>}[<t>])",
                "{{slurm_cluster}} backfill, the last": "slurm_backfill_last_cycle_seconds{<of>}",
            },
            unit="s", alerts=("SlurmSchedulerSlow", "SlurmBackfillStopped"),
        ),
        Panel(
            "Cycles a minute",
            {
                "{{slurm_cluster}} main": "60 * rate(slurm_scheduler_cycles_total{<of>}[<t>])",
                "{{slurm_cluster}} backfill": "60 * rate(slurm_backfill_cycles_total{<of>}[<t>])",
            },
            alerts=("SlurmBackfillStopped",),
        ),
        Panel(
            "Jobs begun, a minute",
            {
                "all": '60 * sum(rate(slurm_scheduler_jobs_total{<of>,event="started"}[<t>]))',
                "by backfill": "60 * sum(rate(slurm_backfill_started_jobs_total{<of>}[<t>]))",
            },
            alerts=("SlurmQueueStuck",),
        ),
        Panel("Requests by kind, a second", {"{{rpc}}": "topk(10, sum by (rpc) (rate(slurm_rpcs_total{<of>}[<t>])))"}, stacked=True),
        Panel(
            "Time for requests by kind", {"{{rpc}}": "topk(10, sum by (rpc) (rate(slurm_rpc_seconds_total{<of>}[<t>])))"},
            unit="percentunit", stacked=True, about="Of a second each second: which requests keep slurmctld busy.",
        ),
        Panel(
            "Requests by user, a second", {"{{user}}": "topk(10, sum by (user) (rate(slurm_user_rpcs_total{<of>}[<t>])))"},
            stacked=True, alerts=("SlurmUserAsksTooOften",),
        ),
        Panel(
            "slurmrestd takes for an answer", {"{{source}}": "max by (source) (slurm_refresh_duration_seconds{<of>})"},
            unit="s", alerts=("SlurmMetricsOld",), width=12,
        ),
        Panel(
            "Readings that failed, an hour", {"{{source}}": "sum by (source) (increase(slurm_refresh_failures_total{<of>}[1h]))"},
            alerts=("SlurmNotAnswering",), width=12,
        ),
    ),
)  # fmt: skip

OPERATOR = Dashboard(
    "operator",
    "Soperator: operator",
    "Whether one leads and follows the specs, what it costs the API server, and how clusters are by their conditions.",
    (
        stat("Leaders", "sum(soperator_leader) or vector(0)", (0, "red"), (1, "green"), (2, "red"), alerts=("SoperatorNotLeading",)),
        stat(
            "Objects whose passes fail", "sum(max by (controller) (soperator_queue_failing))",
            (0, "green"), (1, "red"), alerts=("SoperatorPassesFail",),
        ),
        stat(
            "Objects that wait for a pass", "sum(max by (controller) (soperator_queue_depth))",
            (0, "green"), (50, "orange"), alerts=("SoperatorBehind",),
        ),
        stat(
            "Clusters not available", 'count(soperator_cluster_condition{<by>,condition="Available"} == 0) or vector(0)',
            (0, "green"), (1, "red"), alerts=("SoperatorClusterNotAvailable",),
        ),
        stat(
            "Clusters whose Slurm is silent", "count(soperator_slurm_answering{<by>} == 0) or vector(0)",
            (0, "green"), (1, "red"), alerts=("SoperatorSlurmSilent",),
        ),
        Panel("Version", {"": "max by (version) (soperator_info)"}, "table", width=4),
        Panel(
            "Conditions that are False",
            {"": "max by (slurm_cluster_namespace, slurm_cluster, condition) (soperator_cluster_condition{<by>}) == 0"},
            "table", width=12, alerts=("SoperatorClusterNotAvailable", "SoperatorMetricsMissing", "SoperatorVolumeAlmostFull"),
            about="`kubectl get slurmcluster -o yaml` has each with its reason.",
            quiet="every condition holds",
        ),
        Panel(
            "Passes a minute", {"{{controller}} {{result}}": "60 * sum by (controller, result) (rate(soperator_passes_total[<t>]))"},
            width=12, alerts=("SoperatorPassesFail",),
        ),
        Panel(
            "Nine passes in ten take less than",
            {"{{controller}}": "histogram_quantile(0.9, sum by (controller, le) (rate(soperator_pass_seconds_bucket[<t>])))"},
            unit="s", alerts=("SoperatorBehind",),
        ),
        Panel("API requests by code, a second", {"{{code}}": "sum by (code) (rate(soperator_api_requests_total[<t>]))"}, stacked=True),
        Panel("Objects in caches", {"{{kind}}": "max by (kind) (soperator_store_objects)"}, about="What the operator keeps in memory."),
        Panel("Keys worked on and waiting for their time", {
            "{{controller}} worked on": "max by (controller) (soperator_queue_active)",
            "{{controller}} wait": "max by (controller) (soperator_queue_waiting)",
        }),
        Panel(
            "Whole lists read, an hour", {"{{kind}}": "sum by (kind) (increase(soperator_relists_total[1h]))"},
            about="More than one or two of a kind: its watch breaks off.",
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
