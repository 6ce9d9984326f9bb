"""Every name of an object in Kubernetes and of a node in Slurm. Names are defined only here, so that two names cannot collide unnoticed.

The CRD limits SlurmCluster names to 30 characters and NodeSet names to 40. So `<cluster>-<nodeset>-<n>` may exceed the 63 characters of a DNS label
if both are long; `worker_pod` then shortens the name and appends a hash.
"""

import hashlib

LABEL_LIMIT = 63

CONTROLLER_PORT = 6817
SLURMD_PORT = 6818
DBD_PORT = 6819
REST_PORT = 6820
#: Where nginx of the users' slurmrestd takes their requests, and where it says that it can.
REST_USERS_PORT = 6821
REST_READY_PORT = 8081
#: Where slurmrestd listens on the loopback of its pod, behind nginx.
REST_LOCAL_PORT = 6823
DATABASE_PORT = 3306
SSH_PORT = 22
#: Where a worker says whether its jail can be entered.
JAIL_PORT = 6822
#: Where a worker says what its jobs use.
USAGE_PORT = 6823
#: Where the exporter serves metrics.
METRICS_PORT = 8080


def fit(name: str) -> str:
    """Return the name; if it is longer than a DNS label, its beginning and a hash of the whole name."""
    if len(name) <= LABEL_LIMIT:
        return name
    return f"{name[: LABEL_LIMIT - 9].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def nodes_service(cluster: str) -> str:
    """Return the name of the headless Service that gives every pod of the cluster a host name."""
    return f"{cluster}-nodes"


def controller(cluster: str) -> str:
    """Return the name of the StatefulSet and the Service of slurmctld."""
    return f"{cluster}-controller"


def controller_host(cluster: str, number: int) -> str:
    """Return the host name of a slurmctld, which is its pod's."""
    return f"{controller(cluster)}-{number}"


def controller_address(cluster: str, number: int) -> str:
    """Return the name of the Service of a slurmctld; the first slurmctld has the name that clients try first."""
    return controller_host(cluster, number) if number else controller(cluster)


def login(cluster: str) -> str:
    """Return the name of the StatefulSet, Service and ConfigMap of login."""
    return f"{cluster}-login"


def rest(cluster: str) -> str:
    """Return the name of the Deployment and the Service of slurmrestd."""
    return f"{cluster}-rest"


def rest_users(cluster: str) -> str:
    """Return the name of the Deployment, the Service, the NetworkPolicy and the PodDisruptionBudget of the users' slurmrestd."""
    return f"{cluster}-rest-users"


def accounting(cluster: str) -> str:
    """Return the name of the StatefulSet, the Service and the ConfigMap of slurmdbd."""
    return f"{cluster}-accounting"


def database(cluster: str) -> str:
    """Return the name of the StatefulSet and the Service of the operator's MariaDB, its claim, or the MariaDB resource."""
    return f"{cluster}-database"


def database_password(cluster: str) -> str:
    """Return the name of the Secret with the password of slurmdbd's user in a database that the operator creates."""
    return f"{cluster}-database-password"


def usage(cluster: str) -> str:
    """Return the name of the NetworkPolicy for scrapes of the usage of workers' jobs."""
    return f"{cluster}-usage"


def exporter(cluster: str) -> str:
    """Return the name of the Deployment, the Service and the NetworkPolicy of the exporter."""
    return f"{cluster}-exporter"


def config(cluster: str) -> str:
    """Return the name of the ConfigMap with slurm.conf and Slurm's other files, as they are mounted."""
    return f"{cluster}-config"


def anchor(cluster: str) -> str:
    """Return the name of the ConfigMap that is a second owner of every object of the cluster."""
    return f"{cluster}-anchor"


def memory(cluster: str, kind: str, name: str) -> str:
    """Return the ConfigMap with what the operator remembers of a HealthCheck or a SlurmAccount; no cluster has a name with a dot."""
    whole = f"{cluster}.{kind.lower()}.{name}"
    return whole if len(whole) <= 253 else f"{whole[:236]}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


def generation(cluster: str, generation: str) -> str:
    """Return the name of the ConfigMap that keeps one generation of Slurm's files."""
    return f"{cluster}-config-{generation}"


def trial(cluster: str, generation: str) -> str:
    """Return the name of the pod in which a slurmctld tries a generation."""
    return f"{cluster}-trial-{generation}"


def auth_key(cluster: str) -> str:
    """Return the name of the Secret with slurm.key or munge.key."""
    return f"{cluster}-auth-key"


def jwt_key(cluster: str) -> str:
    """Return the name of the Secret with the key that signs tokens for REST."""
    return f"{cluster}-jwt-key"


def host_keys(cluster: str) -> str:
    """Return the name of the Secret with the SSH host keys of login."""
    return f"{cluster}-ssh-host-keys"


def kept(secret: str) -> str:
    """Return the name of the copy from which a Secret with keys is restored."""
    return f"{secret}-kept"


def jail_claim(cluster: str) -> str:
    """Return the name of the claim of the jail, if the spec names none."""
    return f"{cluster}-jail"


def state_claim(cluster: str) -> str:
    """Return the name of the claim of slurmctld's state, if the spec names none."""
    return f"{cluster}-state"


def populate(cluster: str) -> str:
    """Return the name of the Job that fills the jail."""
    return f"{cluster}-populate"


def backup(cluster: str, name: str) -> str:
    """Return the name of the Job that makes a backup, and of the ConfigMap with the objects that go into it."""
    return fit(f"{cluster}-backup-{name}")


def mount_points(cluster: str) -> str:
    """Return the name of the Job that creates the mount points that the jail lacks."""
    return f"{cluster}-mount-points"


def workers(cluster: str) -> str:
    """Return the name of the PodDisruptionBudget over protected workers."""
    return f"{cluster}-workers"


def jail_plan(cluster: str, nodeset: str, plan: str) -> str:
    """Return the name of the ConfigMap with a mount plan of a NodeSet's nodes; each plan, by its hash, has one."""
    return fit(f"{cluster}-{nodeset}-jail-{plan}")


def checks(cluster: str, nodeset: str) -> str:
    """Return the name of the ConfigMap with the checks of a NodeSet's nodes."""
    return fit(f"{cluster}-{nodeset}-checks")


def slurm_node(nodeset: str, index: int) -> str:
    """Return the name of the Slurm node, which is also the pod's host name."""
    return f"{nodeset}-{index}"


def worker_pod(cluster: str, nodeset: str, index: int) -> str:
    """Return the name of the pod of a Slurm node."""
    return fit(f"{cluster}-{nodeset}-{index}")
