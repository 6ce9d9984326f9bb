"""The reference page of conditions and their reasons; `make crds` writes it.

Every reason that a status of ours may have stands here, and no other: tests/world fails for one that is missing, tests/unit for one that no code has.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NAME = "conditions.md"


@dataclass(frozen=True)
class ConditionPage:
    """One type of condition: the kinds that have it, what True means, and its reasons with what each means and what to do."""

    type: str
    kinds: str
    meaning: str
    reasons: Mapping[str, tuple[str, str]]


_SPEC = "the object's spec, or one that it needs, has a fault, and the former one stays in force"
_FIX = "correct the field that the message names"
_ASK = "nothing; the message says what is waited for"
_NONE = "nothing"
_NOT_READY = "look at the pod that the message names"

CONDITIONS = (
    ConditionPage("Available", "SlurmCluster, NodeSet", "it works: users can log in and submit, or the nodes of the NodeSet take jobs; with "
                  "another reason than AllReady it works in part", {
        "AllReady": ("all of it is there", _NONE),
        "ControllerNotReady": ("no slurmctld is ready, or a backup is not", _NOT_READY),
        "LoginNotReady": ("no login pod is ready, or one is not", _NOT_READY),
        "RestNotReady": ("slurmrestd is not ready, without which the operator does not know Slurm's nodes", _NOT_READY),
        "WorkersNotReady": ("some workers are not ready", "look at the workers that the message names"),
        "WorkersMissing": ("fewer nodes get jobs than are desired", "look at the nodes that the message names"),
        "NoCapacity": ("nodes that were to wake did not", "correct what the message names, or give the Kubernetes cluster machines"),
        "AccountingNotReady": ("jobs run, and are not recorded at present", "see the condition AccountingReady"),
        "ConfigNotApplied": ("slurmctld runs with a former configuration", "see the condition ConfigApplied"),
        "KeysNotSettled": ("a key is being replaced, or is not the one that daemons have", "see the condition KeysSettled"),
        "SlurmNotAnswering": ("slurmctld or slurmrestd does not answer, so nothing is changed", "see their logs"),
        "SlurmRefused": ("Slurm refused what the operator asked, or cannot be trusted at present", _FIX),
        "JailNotReady": ("the jail is not filled yet", "see the condition JailReady"),
        "JailRefill": ("the jail is being replaced, and login and workers are closed until then", _ASK),
        "MountPointsMissing": ("folders for submounts are being created in the jail", "see the condition JailReady"),
        "ClaimBeingDeleted": ("somebody deleted a claim that running pods still hold", "see the condition ClaimsKept"),
        "ClusterNotReady": ("the NodeSet waits for its cluster", "see the status of the SlurmCluster"),
        "ClusterRefused": ("the spec of its cluster has a fault, so its workers stay as they are", "correct the SlurmCluster"),
        "GpusNotNamed": ("slurmctld does not know the NodeSet's GPUs yet", _ASK),
        "InvalidSpec": (_SPEC, _FIX),
        "Refused": ("the Kubernetes API refuses a pod or another object", "change what the policy, quota or webhook that it names wants"),
        "Failed": ("the operator met an error that it does not know", "see its log; report it"),
        "Deleting": ("it is being deleted, and waits for jobs", "nothing, or give the jobs up with the annotation `slurm.soperator.io/abandon-jobs`"),
    }),
    ConditionPage("Ready", "HealthCheck, SlurmAccount, SlurmQOS", "the check runs when it is due; Slurm's database has the account or QOS "
                  "as the spec says", {
        "Scheduled": ("runs begin when they are due", _NONE),
        "Suspended": ("`suspend` is true: no new run begins", _NONE),
        "InStep": ("the database has it", _NONE),
        "Changing": ("the database is being changed", _NONE),
        "Waiting": ("its cluster is not ready", _ASK),
        "NoAnswer": ("slurmctld or slurmdbd does not answer", "see the condition AccountingReady of the cluster"),
        "SlurmRefused": ("Slurm refused a job of the check", _FIX),
        "Refused": ("sacctmgr refused a value", _FIX),
        "Taken": ("an older object has this account or QOS", "delete one of the two, or rename one"),
        "InvalidSpec": (_SPEC, _FIX),
        "Deleting": ("it is being deleted", _ASK),
    }),
    ConditionPage("SpecAccepted", "SlurmCluster", "the spec and those of its NodeSets have no fault", {
        "Accepted": ("no fault", _NONE),
        "InvalidSpec": (_SPEC, _FIX),
    }),
    ConditionPage("ConfigApplied", "SlurmCluster", "slurmctld runs with the configuration that the spec asks for, and all daemons have read it", {
        "Applied": ("all have it", _NONE),
        "Trying": ("a slurmctld of its own is started with it first", _NONE),
        "HandingOut": ("daemons are reading it", _NONE),
        "Refused": ("the trial refused it; the former one stays", "correct the line that the message has"),
        "RolledBack": ("slurmctld ended with it, and the former one is back", "correct the line that the message has"),
        "NotRead": ("slurmctld does not start, and there is no former configuration", "correct the line that the message has"),
        "Changed": ("somebody wrote to the ConfigMap, and no copy of its files is left", "change spec.config, so that a new one is rendered"),
        "Behind": ("a daemon has not said that it read it", "see the log of the pod that the message names"),
        "NodeSetUnreadable": ("a NodeSet of the cluster cannot be read", "correct the NodeSet, or upgrade the operator"),
    }),
    ConditionPage("JailReady", "SlurmCluster", "the shared root is filled and answers", {
        "Filled": ("filled from the cluster's image", _NONE),
        "FilledFromAnother": ("filled from a former image, which is as it should be", "upgrade the jail when you like"),
        "NotOurs": ("`populate: Never`: its content is yours", _NONE),
        "OnEachNode": ("each node has a root of its own", _NONE),
        "Waiting": ("it is to be filled", _ASK),
        "Refilling": ("what it lacks of its image is being put back", _NONE),
        "Draining": ("an overwrite waits for jobs", _ASK),
        "Overwriting": ("its root is being replaced, and login is closed", _ASK),
        "Stuck": ("the Job that fills it does not begin", _NOT_READY),
        "Failed": ("the Job that fills it failed", _FIX),
        "NotAnswering": ("its storage does not answer, and no step begins on the nodes that are named", "mend the storage"),
        "MountPointsMissing": ("folders for submounts have to be created", _ASK),
        "InvalidSpec": (_SPEC, _FIX),
    }),
    ConditionPage("WorkersReady", "SlurmCluster", "all desired workers get jobs", {
        "AllReady": ("all do", _NONE),
        "WorkersMissing": ("some do not", "look at the nodes that the message names"),
    }),
    ConditionPage("Settled", "NodeSet", "no scale-in, rollout, maintenance or deletion is under way", {
        "Settled": ("none is", _NONE),
        "Changing": ("one is; the message names the nodes and the jobs that they wait for", _ASK),
    }),
    ConditionPage("Healthy", "NodeSet", "no node fails a check", {
        "ChecksPass": ("none does", _NONE),
        "ChecksFail": ("the nodes that are named do", "repair them; [health checks](../howto/health-checks.md)"),
    }),
    ConditionPage("Passing", "HealthCheck", "no node fails this check", {
        "NodesPass": ("none does", _NONE),
        "NodesFail": ("the nodes that are named do", "repair them; [deep checks](../howto/deep-checks.md)"),
        "SlowTogether": ("nodes are slow together and well by themselves", "look at the network between them"),
    }),
    ConditionPage("Confined", "SlurmCluster", "root in the jail is nobody on the Node", {
        "UserNamespace": ("pods have user namespaces", _NONE),
        "HostUsers": ("they have none, by the spec or because this Kubernetes dropped them", "see [isolation](../explain/isolation.md)"),
        "WallDown": ("a field such as podTemplate takes a wall down", "remove the field that the message names"),
    }),
    ConditionPage("LimitsEnforced", "SlurmCluster", "the kernel holds each job to the CPUs and the memory that it was given", {
        "Cgroup": ("it does", _NONE),
        "Sampled": ("Slurm looks at memory from time to time, and CPUs are counted", "nothing, or [jobs.limits: Cgroup](../howto/limit-jobs.md)"),
        "Off": ("`jobs.limits` is None: nothing holds a job", "nothing, or choose another"),
        "SizeUnknown": ("a NodeSet does not say its size, so Slurm gives out the whole machine", "say cpu and memory in its resources"),
        "Unknown": ("there are no NodeSets yet", _NONE),
    }),
    ConditionPage("KeysSettled", "SlurmCluster", "all daemons have the keys that the Secrets hold", {
        "Made": ("they have those with which the cluster was created", _NONE),
        "Rotated": ("they have those of the last rotation", _NONE),
        "Rotating": ("a rotation is under way", _ASK),
        "OtherKey": ("a Secret holds another key than the daemons", "restore the former key, or request a rotation"),
        "KeyLost": ("a Secret and its copy are missing, and daemons run with that key", "bring the key back as the message says"),
        "KeyIncomplete": ("a Secret lacks a file", "put it in"),
    }),
    ConditionPage("ClaimsKept", "SlurmCluster", "no claim with state, jail or records is on its way out", {
        "Kept": ("none is", _NONE),
        "BeingDeleted": ("somebody deleted one that pods still hold", "keep its volume with the command of the message"),
        "Gone": ("the claim of slurmctld's state is missing while workers run", "bind the former volume to a new claim of that name"),
    }),
    ConditionPage("UpToDate", "SlurmCluster", "the cluster runs the requested images", {
        "AsAsked": ("it does", _NONE),
        "Held": ("this operator has newer ones, which wait for a request", "ask in spec.upgrade.request when you like"),
        "Trying": ("a new image is tried first", _NONE),
        "Slurmdbd": ("slurmdbd goes first", _ASK),
        "Controller": ("slurmctld goes next", _ASK),
        "Workers": ("workers go next, and login after them", _ASK),
        "Refused": ("the new image refuses the cluster's configuration", "correct the line that the message has"),
        "Downgrade": ("the image is older than the state that slurmctld has written", "name an image of that release or a newer one"),
    }),
    ConditionPage("AccountingReady", "SlurmCluster, where accounting is on", "jobs are recorded", {
        "Accounting": ("they are", _NONE),
        "Starting": ("slurmctld is to be told of slurmdbd", _ASK),
        "DatabaseNotReady": ("the database's pod is not ready", _NOT_READY),
        "SlurmdbdNotReady": ("slurmdbd is not ready", _NOT_READY),
        "DatabaseDown": ("slurmdbd does not reach the database", "see whether it runs, and whether host and port are right"),
        "DatabaseFull": ("the database's volume is full", "enlarge it"),
        "NoDatabase": ("there is no such database, or no mariadb-operator", "make it, or let the user make it"),
        "NoRights": ("the user may not use the database", "give the user all rights on it"),
        "NoTls": ("the server demands TLS, or its certificate is not believed", "correct `tls` of the database"),
        "WrongPassword": ("the database server refuses the user", "correct the password in the Secret, or the user"),
        "UnknownCluster": ("the database does not know this cluster: it is another one, or lost its records", "do as the message says"),
    }),
    ConditionPage("MetricsServed", "SlurmCluster, where metrics are on", "the exporter answers", {
        "Served": ("it does", _NONE),
        "ExporterNotReady": ("its pod is not ready", _NOT_READY),
    }),
    ConditionPage("RestServed", "SlurmCluster, where users have REST", "users reach slurmrestd, and tokens in Secrets are fresh", {
        "Served": ("all is there", _NONE),
        "Degraded": ("some pods are not ready", _NOT_READY),
        "NotReady": ("no pod is ready", _NOT_READY),
        "Certificate": ("the Secret of TLS is not there or cannot be read", "make it, of type kubernetes.io/tls"),
        "TokensNotKept": ("a token cannot be created or written", _FIX),
    }),
    ConditionPage("TopologyKnown", "SlurmCluster, where a topology is on", "the place of every worker is known", {
        "Known": ("it is", _NONE),
        "LabelsMissing": ("a Kubernetes Node lacks the label of a level", "set the label, or give the NodeSet topologyLabels"),
    }),
    *(ConditionPage(kind, "SlurmCluster", f"{what} has room, can be written and answers", {
        "Enough": ("it does", _NONE),
        "AlmostFull": ("95 % or more are taken", "enlarge the claim, or remove what is not needed"),
        "ReadOnly": ("it is mounted read-only, as after an error of the disk", "mend the volume"),
        "NotAnswering": ("it does not answer within 5 s", "mend the volume"),
    }) for kind, what in (("StateHasRoom", "the volume of slurmctld's state"), ("JailHasRoom", "the jail's volume"),
                          ("DatabaseHasRoom", "the database's volume"))),
)  # fmt: skip

#: Conditions that follow from the others, whose reason and message they have; what True means.
DERIVED = {
    "Ready": "all that the spec asks for is there and takes jobs. Conditions that only advise do not count: Confined, LimitsEnforced, Healthy, "
    "Passing, TopologyKnown, and those on room. A HealthCheck, SlurmAccount or SlurmQOS reports it itself, as below",
    "Reconciling": "something that the spec asks for is missing, and the operator works on it or waits for it",
    "Stalled": "something that the spec asks for is missing, and only a person can help: the message says what to do",
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
    yield "Each condition has a status, a reason, and a message that says what is so and what to do:"
    yield "`kubectl -n NAMESPACE get slurmcluster NAME -o jsonpath='{.status.conditions}'`."
    yield ""
    yield "Three conditions of every kind follow from the others; `helm --wait`, Flux, Argo CD and `kubectl wait` read them. They have the"
    yield "reason and the message of the first condition that is not as it should be. Reconciling and Stalled are there only while they are True."
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
        yield "| reason | meaning | what to do |"
        yield "|---|---|---|"
        for reason, (meaning, remedy) in each.reasons.items():
            yield f"| {reason} | {meaning} | {remedy} |"
