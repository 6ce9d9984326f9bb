"""Labels and annotations: the keys that identify the operator's objects, and the records on them. They are the operator's memory in Kubernetes."""

from soperator.api.base import GROUP

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "soperator"
#: Kubernetes' recommended labels, by which tools group what they show. Nothing selects by them, so they may change.
APP, APP_NAME = "app.kubernetes.io/name", "slurm"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
CLUSTER = f"{GROUP}/cluster"
ROLE = f"{GROUP}/role"
NODESET = f"{GROUP}/nodeset"
INDEX = f"{GROUP}/index"
PROTECTED = f"{GROUP}/protected"

TEMPLATE = f"{GROUP}/template"
CONFIG = f"{GROUP}/config"
GENERATION = f"{GROUP}/generation"
FIXED = f"{GROUP}/fixed-settings"
TRANSACTION = f"{GROUP}/transaction"
#: Beside Slurm's files: where the nodes lie of which topology.conf says so.
PLACES = f"{GROUP}/places"
PLAN = f"{GROUP}/plan"
POINTS = f"{GROUP}/mount-points"
FILL = f"{GROUP}/fill"
DRAINED = f"{GROUP}/drained"
#: Annotation of a worker whose end waits until its node is drained.
GIVES_WAY = f"{GROUP}/gives-way"
#: On a Kubernetes Node: the failed check for which a worker has left it, as evidence.
UNHEALTHY = f"{GROUP}/unhealthy"
ABANDON = f"{GROUP}/abandon-jobs"
FINALIZER = f"{GROUP}/drain"
KEEP = f"{GROUP}/keep"
IN_SERVICE = f"{GROUP}/InService"
IMAGE = f"{GROUP}/image"
REQUEST = f"{GROUP}/request"
MODE = f"{GROUP}/mode"
#: On a Secret: the request of a rotation, its stage, since when (seconds), and the digest of the file that daemons read.
ROTATION = f"{GROUP}/rotation"
STAGE = f"{GROUP}/rotation-stage"
SINCE = f"{GROUP}/rotation-since"
DIGEST = f"{GROUP}/keys"
#: On a SlurmCluster: the rotation whose key all hosts outside Kubernetes have, as their administrator says.
JOINED = f"{GROUP}/joined"
#: On a SlurmCluster: the version of a Secret whose key the daemons have, as their administrator says.
ACCEPT_KEY = f"{GROUP}/accept-key"
#: On the copy of a Secret with keys: what it adds up to, and whether a person had brought the keys.
CHECKSUM = f"{GROUP}/checksum"
BROUGHT = f"{GROUP}/brought"
#: On a Secret with keys that a person provides: the name of the cluster for which it is meant.
BROUGHT_FOR = f"{GROUP}/brought-for"
#: On a Secret with a user's token: whose it is, until when (seconds), and which version of the key signed it.
TOKEN = f"{GROUP}/token"
#: On slurmdbd's pod: the versions of the Secrets that it was started with, for it reads them at its start alone.
SECRETS = f"{GROUP}/secrets"
#: On a cluster's anchor: what the operator must remember of the cluster and its NodeSets. As a label: of what kind a ConfigMap remembers an object.
MEMORY = f"{GROUP}/memory"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def cluster(name: str) -> dict[str, str]:
    """Return the labels of all objects of a cluster."""
    return {MANAGED_BY: MANAGER, CLUSTER: name}


def role(name: str, of: str) -> dict[str, str]:
    """Return the labels of the pods of a role, which are also their selector."""
    return {**cluster(name), ROLE: of}


def recommended(ours: dict[str, str]) -> dict[str, str]:
    """Return the operator's labels of an object, and Kubernetes' recommended labels with the same content for other tools."""
    component = {COMPONENT: ours[ROLE]} if ROLE in ours else {}
    return {**ours, APP: APP_NAME, INSTANCE: ours[CLUSTER], **component}


def worker(name: str, nodeset: str) -> dict[str, str]:
    """Return the labels of the workers of a NodeSet, which are also their selector."""
    return {**role(name, "worker"), NODESET: nodeset}
