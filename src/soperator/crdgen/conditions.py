"""The reference page of conditions and their reasons, as data with a remedy for each reason; `make crds` writes it.

It has exactly the reasons that a status can have: tests/world fails if one is missing, tests/unit if no code sets one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NAME = "conditions.md"


@dataclass(frozen=True)
class ConditionPage:
    """One type of condition: the kinds that have it, the meaning of True, and its reasons, each with its meaning and its remedy."""

    type: str
    kinds: str
    meaning: str
    reasons: Mapping[str, tuple[str, str]]


_SPEC = "the object's spec, or a spec that it needs, has a fault, and the former one stays in force"
_FIX = "correct the field that the message names"
_ASK = "nothing; the message names what the operator waits for"
_NONE = "nothing"
_NOT_READY = "check the pod that the message names"

CONDITIONS = (
    ConditionPage("Available", "SlurmCluster, NodeSet", "users can log in and submit jobs, or the nodes of the NodeSet accept jobs; with a "
                                                        "reason other than AllReady only in part", {
        "AllReady": ("everything is ready", _NONE),
        "ControllerNotReady": ("no slurmctld is ready, or a backup is not ready", _NOT_READY),
        "LoginNotReady": ("no login pod is ready, or one is not ready", _NOT_READY),
        "RestNotReady": ("slurmrestd is not ready, so the operator cannot observe Slurm's nodes", _NOT_READY),
        "WorkersNotReady": ("some workers are not ready", "check the workers that the message names"),
        "WorkersMissing": ("fewer nodes get jobs than are desired", "check the nodes that the message names"),
        "NoCapacity": ("nodes did not wake within resumeTimeout", "correct the fault in the message, or add machines to the Kubernetes cluster"),
        "AccountingNotReady": ("jobs run, but are not recorded at present", "see the condition AccountingReady"),
        "ConfigNotApplied": ("slurmctld runs with a former configuration", "see the condition ConfigApplied"),
        "KeysNotSettled": ("a key is being replaced, or differs from the key that daemons have", "see the condition KeysSettled"),
        "SlurmNotAnswering": ("slurmctld or slurmrestd does not answer, so nothing is changed", "see their logs"),
        "SlurmRefused": ("Slurm refused a request of the operator, or its answers are not reliable at present", _FIX),
        "JailNotReady": ("the jail is not filled yet", "see the condition JailReady"),
        "JailRefill": ("the jail is being replaced, and login and workers are closed until then", _ASK),
        "MountPointsMissing": ("folders for submounts are being created in the jail", "see the condition JailReady"),
        "ClaimBeingDeleted": ("running pods still use a claim that was deleted", "see the condition ClaimsKept"),
        "ClusterNotReady": ("the NodeSet waits for its cluster", "see the status of the SlurmCluster"),
        "ClusterRefused": ("the spec of its cluster has a fault, so its workers do not change", "correct the SlurmCluster"),
        "GpusNotNamed": ("slurmctld does not know the NodeSet's GPUs yet", _ASK),
        "InvalidSpec": (_SPEC, _FIX),
        "Refused": ("the Kubernetes API refuses a pod or another object", "satisfy or change the policy, quota or webhook that the message names"),
        "Failed": ("the operator had an unexpected error", "check the operator's log, and report the error"),
        "Deleting": ("the object is being deleted and waits for jobs", "nothing, or end them with the annotation `slurm.soperator.io/abandon-jobs`"),
    }),
    ConditionPage("Ready", "HealthCheck, SlurmAccount, SlurmQOS", "the check runs when it is due; the account or QOS in Slurm's database "
                                                                  "matches the spec", {
        "Scheduled": ("runs start when they are due", _NONE),
        "Suspended": ("`suspend` is true, so no new run starts", _NONE),
        "InStep": ("the database matches the spec", _NONE),
        "Changing": ("the database is being changed", _NONE),
        "Waiting": ("the cluster of the object is not ready", _ASK),
        "NoAnswer": ("slurmctld or slurmdbd does not answer", "check the condition AccountingReady of the cluster"),
        "SlurmRefused": ("Slurm refused a job of the check", _FIX),
        "InvariantBroken": (
            "a decision would have broken a rule of deep checks; nothing was done in Slurm",
            "report the message as a defect; suspend the check meanwhile",
        ),
        "Refused": ("sacctmgr refused a value", _FIX),
        "Taken": ("an older object defines this account or QOS", "delete one of the two, or rename one"),
        "InvalidSpec": (_SPEC, _FIX),
        "Deleting": ("the object is being deleted", _ASK),
    }),
    ConditionPage("Ready", "SlurmBackup", "backups are made when they are due, and the last one succeeded", {
        "BackedUp": ("the last backup succeeded", _NONE),
        "BackingUp": ("a backup is being made; True if the previous backup succeeded", _ASK),
        "OnRequest": ("no backup was made yet, and none is due", "set `runRequest` or `schedule`"),
        "Suspended": ("`suspend` is true, so no backups are made", _NONE),
        "BackupFailed": ("the last backup failed", "correct the fault that the message names"),
        "RepositoryMissing": ("the repository of the last backup is gone, and no new one was created", "bring it back, or change `repository.path`"),
        "RepositoryChanged": ("its place has another repository than that of the last backup", "bring that back, or create another SlurmBackup"),
        "RepositoryDamaged": ("`restic check` found damage, and no backup was removed", "bring back a copy of it, or change `repository.path`"),
        "RepositoryLocked": ("another backup had the repository locked for ten minutes", "wait; a scheduled backup is repeated"),
        "StoreDenied": ("the store refused the keys", "correct the Secret `s3.credentialsSecretName`, or the rights of its user"),
        "StoreUnreachable": ("the store gave no answer, or none that restic can use", "correct `repository.s3`, or make it reachable"),
        "WrongPassword": ("the repository has another password", "correct the Secret `repository.password`"),
        "Waiting": ("the cluster of the object is not ready", _ASK),
        "InvalidSpec": (_SPEC, _FIX),
    }),
    ConditionPage("SpecAccepted", "SlurmCluster", "the spec and those of its NodeSets have no fault", {
        "Accepted": ("no fault", _NONE),
        "InvalidSpec": (_SPEC, _FIX),
    }),
    ConditionPage("ConfigApplied", "SlurmCluster", "slurmctld runs with the configuration of the spec, and all daemons have read it", {
        "Applied": ("all daemons have read it", _NONE),
        "Trying": ("a trial slurmctld starts with the new configuration first", _NONE),
        "HandingOut": ("daemons are reading the new configuration", _NONE),
        "Refused": ("the trial slurmctld refused the configuration, and the former one stays", "correct the line that the message quotes"),
        "RolledBack": ("slurmctld exited with the new configuration, and the former one is restored", "correct the line that the message quotes"),
        "NotRead": ("slurmctld does not start, and no former configuration exists", "correct the line that the message quotes"),
        "Changed": ((
            "a person or program changed the ConfigMap, and no copy of its files exists"
        ), (
            "change spec.config, so that the operator renders a new configuration"
        )),
        "InvariantBroken": (
            "a step would have broken a rule of the transaction; no file was written",
            "report the message as a defect; the daemons keep their configuration",
        ),
        "Behind": ("a daemon has not reported that it has read the configuration", "check the log of the pod that the message names"),
        "NodeSetUnreadable": ("a NodeSet of the cluster is not readable for this operator", "correct the NodeSet, or upgrade the operator"),
        "FilesMissing": (
            "an entry that config.files or a script refers to is missing or unreadable; its former content stays",
            "create or correct the entry",
        ),
    }),
    ConditionPage("JailReady", "SlurmCluster", "the shared root is filled and answers", {
        "Filled": ("filled from the cluster's image", _NONE),
        "FilledFromAnother": ("the jail was filled from a former image, which is valid", "nothing, or upgrade the jail"),
        "NotOurs": ("`populate: Never`, so an administrator manages the content of the jail", _NONE),
        "OnEachNode": ("each node has its own root", _NONE),
        "Waiting": ("the jail is not filled yet", _ASK),
        "Refilling": ("missing files of the image are being restored", _NONE),
        "Draining": ("an overwrite waits for jobs", _ASK),
        "Overwriting": ("the root of the jail is being replaced, and login is closed", _ASK),
        "Stuck": ("the Job that fills the jail does not start", _NOT_READY),
        "Failed": ("the Job that fills the jail failed", _FIX),
        "NotAnswering": ("the storage of the jail does not answer, and no step starts on the nodes that the message names", "repair the storage"),
        "MountPointsMissing": ("folders for submounts do not exist yet", _ASK),
        "InvalidSpec": (_SPEC, _FIX),
    }),
    ConditionPage("WorkersReady", "SlurmCluster", "all desired workers can get jobs", {
        "AllReady": ("all desired workers get jobs", _NONE),
        "WorkersMissing": ("some workers get no jobs", "check the nodes that the message names"),
    }),
    ConditionPage("Settled", "NodeSet", "no scale-in, rollout, maintenance or deletion is in progress", {
        "Settled": ("no change is in progress", _NONE),
        "Changing": ("a change is in progress; the message names the nodes and the jobs that they wait for", _ASK),
    }),
    ConditionPage("Healthy", "NodeSet", "no node fails a check", {
        "ChecksPass": ("no node fails a check", _NONE),
        "ChecksFail": ("the nodes that the message names fail a check", "repair them; [health checks](../howto/health-checks.md)"),
    }),
    ConditionPage("Passing", "HealthCheck", "no node fails this check", {
        "NodesPass": ("no node fails the check", _NONE),
        "NodesFail": ("the nodes that the message names fail a check", "repair them; [deep checks](../howto/deep-checks.md)"),
        "SlowTogether": ("nodes are slow together, but each alone is healthy", "check the network between them"),
    }),
    ConditionPage("Confined", "SlurmCluster", "root in the jail is nobody on the Node", {
        "UserNamespace": ("pods have user namespaces", _NONE),
        "HostUsers": ((
            "pods have no user namespace, by the spec or because the API server ignores the field"
        ), "see [isolation](../explain/isolation.md)"),
        "WallDown": ("a field such as podTemplate weakens the isolation", "remove the field that the message names"),
    }),
    ConditionPage("LimitsEnforced", "SlurmCluster", "the kernel limits each job to its allocated CPUs and memory", {
        "Cgroup": ("the kernel limits each job", _NONE),
        "Sampled": ("Slurm samples memory, and counts CPUs without a limit", "nothing, or [jobs.limits: Cgroup](../howto/limit-jobs.md)"),
        "Off": ("`jobs.limits` is None, so nothing limits a job", "nothing, or choose another"),
        "SizeUnknown": ("a NodeSet does not set its size, so Slurm allocates the whole machine", "set cpu and memory in its resources"),
        "Unknown": ("there are no NodeSets yet", _NONE),
    }),
    ConditionPage("KeysSettled", "SlurmCluster", "all daemons have the keys of the Secrets", {
        "Made": ("the daemons have the keys with which the cluster was created", _NONE),
        "Rotated": ("the daemons have the keys of the last rotation", _NONE),
        "Rotating": ("a rotation is in progress", _ASK),
        "OtherKey": ("a Secret has another key than the daemons", "restore the former key, or request a rotation"),
        "KeyLost": ("a Secret and its copy are missing, and daemons run with their key", "restore the key as the message says"),
        "KeyIncomplete": ("a Secret lacks a file", "add the file"),
        "KeyForeign": (
            "a Secret that the operator did not create has the name of a Secret with keys; nothing is created",
            "rename it, or [provide it](../howto/rotate-keys.md#a-key-of-your-own) for the cluster",
        ),
    }),
    ConditionPage("ClaimsKept", "SlurmCluster", "no claim with state, jail or records is being deleted", {
        "Kept": ("no such claim is being deleted", _NONE),
        "BeingDeleted": ("pods still use a claim that was deleted", "keep its volume with the command in the message"),
        "Gone": ("the claim of slurmctld's state is missing while workers run", "bind the former volume to a new claim of that name"),
    }),
    ConditionPage("UpToDate", "SlurmCluster", "the cluster runs the requested images", {
        "AsAsked": ("all parts run the requested images", _NONE),
        "Held": ("this operator has newer images, which wait for a request", "set spec.upgrade.request to adopt them"),
        "Trying": ("a new image is tried first", _NONE),
        "Slurmdbd": ("slurmdbd gets the new image first", _ASK),
        "Controller": ("slurmctld gets the new image next", _ASK),
        "Workers": ("workers get the new image next, and login after them", _ASK),
        "Refused": ("the new image refuses the cluster's configuration", "correct the line that the message quotes"),
        "Downgrade": ("the image is older than the state that slurmctld has written", "set an image of that release or a newer one"),
    }),
    ConditionPage("AccountingReady", "SlurmCluster, if accounting is on", "jobs are recorded", {
        "Accounting": ("slurmdbd records jobs", _NONE),
        "Starting": ("slurmctld does not use slurmdbd yet", _ASK),
        "DatabaseNotReady": ("the database's pod is not ready", _NOT_READY),
        "SlurmdbdNotReady": ("slurmdbd is not ready", _NOT_READY),
        "DatabaseDown": ("slurmdbd does not reach the database", "check that the database runs, and that host and port are correct"),
        "DatabaseFull": ("the database's volume is full", "enlarge the volume"),
        "NoDatabase": ("the database or mariadb-operator does not exist", "create the database, or grant the user the right to create it"),
        "NoRights": ("the user lacks rights on the database", "grant the user all rights on the database"),
        "NoTls": ("the server requires TLS, or its certificate is not trusted", "correct `tls` of the database"),
        "WrongPassword": ("the database server refuses the user", "correct the password in the Secret, or the user"),
        "UnknownCluster": ("the database does not know this cluster: it is another database, or has lost its records", "follow the message"),
    }),
    ConditionPage("MetricsServed", "SlurmCluster, if metrics are on", "the exporter answers", {
        "Served": ("the exporter answers", _NONE),
        "ExporterNotReady": ("the exporter's pod is not ready", _NOT_READY),
    }),
    ConditionPage("RestServed", "SlurmCluster, if users have REST", "users reach slurmrestd, and tokens in Secrets are valid", {
        "Served": ("all pods are ready, and all tokens are valid", _NONE),
        "Degraded": ("some pods are not ready", _NOT_READY),
        "NotReady": ("no pod is ready", _NOT_READY),
        "Certificate": ("the Secret of TLS is missing or invalid", "create the Secret, of type kubernetes.io/tls"),
        "TokensNotKept": ("a token cannot be created or written", _FIX),
    }),
    ConditionPage("TopologyKnown", "SlurmCluster, if a topology is set", "the location of every worker is known", {
        "Known": ("every worker has a known location", _NONE),
        "LabelsMissing": ("a Kubernetes Node lacks the label of a level", "set the label, or set topologyLabels of the NodeSet"),
    }),
    *(ConditionPage(kind, "SlurmCluster", f"{what} has free space, is writable and answers", {
        "Enough": ("the volume has free space", _NONE),
        "AlmostFull": ("95 % or more are taken", "enlarge the claim, or delete unneeded files"),
        "ReadOnly": ("the volume is mounted read-only, as after a disk error", "repair the volume"),
        "NotAnswering": ("the volume does not answer within 5 s", "repair the volume"),
    }) for kind, what in (("StateHasRoom", "the volume of slurmctld's state"), ("JailHasRoom", "the jail's volume"),
                          ("DatabaseHasRoom", "the database's volume"))),
)  # fmt: skip

#: Conditions that follow from the others, whose reason and message they have; what True means.
DERIVED = {
    "Ready": "everything in the spec is ready and accepts jobs. Advisory conditions do not count: Confined, "
    "LimitsEnforced, Healthy, Passing, TopologyKnown, and those about free space. A HealthCheck, SlurmAccount, "
    "SlurmQOS or SlurmBackup reports Ready directly, as below",
    "Reconciling": "something in the spec is not ready, and the operator works on it or waits for it",
    "Stalled": "something in the spec is not ready, and needs a person: the message has the remedy",
}
_ALL = frozenset(reason for page in CONDITIONS for reason in page.reasons)

KNOWN = {page.type: frozenset(page.reasons) for page in CONDITIONS} | dict.fromkeys(DERIVED, _ALL)


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Conditions and reasons"
    yield ""
    yield "<!-- Generated from src/soperator/crdgen/conditions.py by `make crds`. -->"
    yield ""
    yield "Each condition has a status, a reason, and a message with the state and its remedy:"
    yield "`kubectl -n NAMESPACE get slurmcluster NAME -o jsonpath='{.status.conditions}'`."
    yield ""
    yield "Three conditions of every kind follow from the others; `helm --wait`, Flux, Argo CD and `kubectl wait` read them. They have the"
    yield "reason and the message of the first condition that reports a fault. Reconciling and Stalled exist only while they are True."
    yield ""
    yield "| condition | True |"
    yield "|---|---|"
    for name, meaning in DERIVED.items():
        yield f"| {name} | {meaning} |"
    for each in CONDITIONS:
        yield ""
        yield f"## {each.type}"
        yield ""
        yield f"Of {each.kinds}. True: {each.meaning}."
        yield ""
        yield "| reason | meaning | remedy |"
        yield "|---|---|---|"
        for reason, (meaning, remedy) in each.reasons.items():
            yield f"| {reason} | {meaning} | {remedy} |"
