"""The clusters whose objects are written down: a minimal one, and one that uses every field."""

import re

from soperator.api.backup import SlurmBackupSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.cli.support.explain_jail import table
from soperator.render.backup import job as render_backup
from soperator.render.cluster import network, user_rest_api
from soperator.render.cluster import objects as render_cluster
from soperator.render.cluster.keys import render_secret, wanted_files
from soperator.render.jail import gres, mount_points, populate_job
from soperator.render.jail.mount_plan import login_plan, worker_plan
from soperator.render.parts import user_tokens
from soperator.render.parts.model import (
    Backup,
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.slurm_conf import job_limits, slurm_conf, trial
from soperator.render.worker import pod
from soperator.slurm.settings import diff
from soperator.slurm.settings.state import ConfigState
from soperator.slurm.user_tokens import TokenNote

#: The hash at the end of the name of a mount plan.
PLAN = re.compile(r"-[0-9a-f]{16}$")

DEFAULTS = Defaults(
    slurm="registry.test/slurm:1", login="registry.test/login:1", munge="registry.test/munge:1",
    agents="registry.test/populate:1", jail="registry.test/jail:1", sssd="registry.test/sssd:1",
    mariadb="registry.test/mariadb:1", proxy="registry.test/proxy:1", backup="registry.test/backup:1", operator_namespace="soperator-system",
)  # fmt: skip

MINIMAL = ({}, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})

FULL_CLUSTER = {
    "images": {"slurm": "my/slurm:2", "pullPolicy": "Always", "pullSecrets": ["registry"]},
    "auth": {"type": "munge", "keepKeys": True},
    "sssd": {"configSecretName": "ldap", "resources": {"requests": {"memory": "64Mi"}}},
    "security": {"userNamespace": False},
    "jail": {
        "claim": {"name": "shared"},
        "image": "my/jail:2",
        "submounts": [
            {"path": "/home/data", "hostPath": {"path": "/mnt/data"}, "readOnly": True},
            {"path": "/home", "claimName": "homes", "subPath": "team"},
            {"path": "/scratch", "tmpfs": {"size": "1Gi"}},
        ],
    },
    "controller": {
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "state": {"name": "state"},
        "scheduling": {"nodeSelector": {"pool": "system"}, "priorityClassName": "high"},
    },
    "login": {
        "replicas": 2,
        "service": {
            "type": "LoadBalancer",
            "port": 2222,
            "annotations": {"cloud/internal": "true"},
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "externalTrafficPolicy": "Local",
        },
        "passwordAuthentication": True,
        "rootAuthorizedKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH8xk0x admin"],
        "resources": {"limits": {"memory": "4Gi"}},
    },
    "rest": {"replicas": 2},
    "metrics": {
        "jobs": True,
        "allowFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "exporter": {"nodes": False, "resources": {"requests": {"memory": "96Mi"}, "limits": {"memory": "256Mi"}}},
    },
    "health": {"mode": "Drain", "interval": "2m", "maxUnhealthy": "5%", "disabledChecks": ["tmp-leftovers"]},
    "partitions": [
        {"name": "gpu", "nodeSets": ["h100"], "default": True, "options": {"MaxTime": "1-00:00:00"}},
        {"name": "all", "hidden": True},
    ],
    "config": {
        "extraLines": {
            "slurm": "SchedulerParameters=bf_continue\nJobSubmitPlugins=require_timelimit",
            "gres": "AutoDetect=nvidia",
        },
        "files": [
            {"name": "topology.conf", "text": "SwitchName=leaf Nodes=h100-[0-15]"},
            {
                "name": "job_submit.lua",
                "text": "function slurm_job_submit(job, partitions, uid)\n    return slurm.SUCCESS\nend\n"
                "function slurm_job_modify(job, record, partitions, uid)\n    return slurm.SUCCESS\nend",
            },
        ],
        "prolog": [{"name": "log", "text": "#!/bin/sh\nlogger prolog of $SLURM_JOB_ID"}],
        "epilog": [{"name": "log", "text": "#!/bin/sh\nlogger epilog of $SLURM_JOB_ID"}],
        "prologSlurmctld": [{"name": "count", "text": "#!/bin/sh\nexit 0"}],
        "taskProlog": [{"name": "site", "text": "#!/bin/sh -e\necho export SITE=north"}],
    },
}
FULL_NODESET = {
    "clusterRef": {"name": "demo"},
    "replicas": 1,
    "image": "my/slurmd-cuda:2",
    "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
    "gpu": {"vendor": "nvidia", "count": 8, "type": "h100", "driver": {"cdi": {"root": "/run/nvidia/driver/usr"}}},
    "rdma": {"resources": {"rdma/hca": "1"}, "infiniband": True},
    "features": ["nvlink"],
    "weight": 10,
    "extraConf": "MemSpecLimit=512",
    "shmSize": "16Gi",
    "submounts": [{"path": "/local", "hostPath": {"path": "/mnt/nvme"}}],
    "volumes": [{"name": "extra", "emptyDir": {}}],
    "volumeMounts": [{"name": "extra", "mountPath": "/extra"}],
    "scheduling": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "podTemplate": {
        "metadata": {"annotations": {"team": "ml"}},
        "spec": {"containers": [{"name": "slurmd", "env": [{"name": "DEBUG", "value": "1"}]}]},
    },
}

PER_NODE = (
    {
        "jail": {
            "perNode": True,
            "claim": {"size": "20Gi", "storageClassName": "nvme"},
            "submounts": [{"path": "/home", "claimName": "homes"}, {"path": "/data", "claimName": "data"}],
        }
    },
    {"worker": {"clusterRef": {"name": "demo"}, "submounts": [{"path": "/home/cache", "tmpfs": {"size": "1Gi"}}]}},
)

GPUS = (
    {},
    {
        "h100": {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", "count": 8, "type": "h100"}},
        "mi300": {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "amd", "count": 1}},
        "mig": {
            "clusterRef": {"name": "demo"},
            "gpu": {"vendor": "nvidia", "count": 1, "type": "1g.10gb", "resourceName": "nvidia.com/mig-1g.10gb"},
        },
        "shared": {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", "count": 2, "type": "l4", "shards": 16}},
    },
)

EMBEDDED = (
    {
        "accounting": {
            "enforce": ["limits", "qos"],
            "managedDatabase": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}},
            "purge": {"jobs": "12months", "steps": "30days", "usage": "36months"},
            "archive": {"claimName": "archive"},
        }
    },
    {"worker": {"clusterRef": {"name": "demo"}}},
)

EXTERNAL = (
    {
        "auth": {"type": "munge"},
        "accounting": {
            "externalDatabase": {
                "host": "db.example.com",
                "port": 3307,
                "user": "hpc",
                "database": "slurm_demo",
                "password": {"secretName": "hpc-db"},
                "tls": {"ca": {"secretName": "db-ca", "key": "ca.pem"}, "certificateSecretName": "hpc-db-client"},
            },
        },
    },
    {"worker": {"clusterRef": {"name": "demo"}}},
)

MARIADB = (
    {
        "accounting": {
            "mariadbOperator": {
                "replicas": 3,
                "size": "50Gi",
                "storageClassName": "fast",
                "resources": {"limits": {"memory": "8Gi"}},
                "spec": {"galera": {"enabled": True}, "storage": {"resizeInUseVolumes": True}},
            },
        }
    },
    {"worker": {"clusterRef": {"name": "demo"}}},
)

CASES = {"minimal": MINIMAL, "full": (FULL_CLUSTER, {"h100": FULL_NODESET}), "per-node": PER_NODE, "gpus": GPUS}
#: Clusters with accounting, of which only what it adds is written down.
ACCOUNTED = {"accounting": EMBEDDED, "accounting-external": EXTERNAL, "accounting-mariadb": MARIADB}
#: Clusters with a slurmrestd for users, of which only what it adds or changes is written down.
USERS = {
    "rest-users": {
        "metrics": {"exporter": {}},
        "rest": {
            "users": {
                "service": {"type": "LoadBalancer", "port": 443, "annotations": {"cloud/internal": "true"}},
                "tls": {"secretName": "rest-tls"},
                "allowFrom": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
                "maxLifetime": "24h",
                "tokens": [{"user": "ci", "secretName": "ci-token", "lifetime": "30m"}],
                "resources": {"limits": {"memory": "1Gi"}},
                "scheduling": {"nodeSelector": {"pool": "system"}},
            }
        },
    }
}


def rendered(case: str) -> dict[str, Object]:
    """Every object of a case by the file that holds it."""
    cluster_spec, nodesets = CASES[case]
    members = {name: NodeSetSpec.model_validate(spec) for name, spec in nodesets.items()}
    spec = SlurmClusterSpec.model_validate(cluster_spec)
    cluster = Cluster("slurm", "demo", "uid-cluster", spec, job_limits.shares(members), gres.counted(members))
    objects = [
        render_secret(cluster, name, dict.fromkeys(files, b"key")) for name, files in wanted_files(cluster).items()
    ]
    name, files = slurm_conf.generation(cluster), slurm_conf.files(cluster)
    state = ConfigState(name, name, 1.0, name, 1.0, 0, fixed=diff.fixed(files))
    objects += render_cluster.render_cluster(cluster, DEFAULTS, jail_ready=True, state=state)
    claims = sum(1 for each in objects if each["kind"] in ("Secret", "PersistentVolumeClaim"))
    objects.insert(claims, trial.render_live(cluster, files, state))
    objects += populate_job.render_populate(cluster, DEFAULTS)
    members = [
        NodeSet("slurm", name, f"uid-{name}", NodeSetSpec.model_validate(spec)) for name, spec in nodesets.items()
    ]
    objects += mount_points.render_mount_points(cluster, members, DEFAULTS, "uid-job")
    for nodeset in members:
        objects += [pod.render_plan(cluster, nodeset), pod.render_worker(cluster, nodeset, 0, DEFAULTS)]
    objects += [trial.render_trial(cluster, DEFAULTS, name)]
    return {
        f"{number:02}-{each['kind'].lower()}-{PLAN.sub('', each['metadata']['name'])}.yaml": each
        for number, each in enumerate(objects)
    }


def accounted(case: str) -> dict[str, Object]:
    """The objects of slurmdbd and its database, and the ConfigMap with the lines of slurm.conf that name it."""
    cluster_spec, nodesets = ACCOUNTED[case]
    members = {name: NodeSetSpec.model_validate(spec) for name, spec in nodesets.items()}
    spec = SlurmClusterSpec.model_validate(cluster_spec)
    cluster = Cluster("slurm", "demo", "uid-cluster", spec, job_limits.shares(members), accounted=True)
    secrets = [name for name in wanted_files(cluster) if name.endswith("password")]
    objects = [render_secret(cluster, name, {"password": b"secret"}) for name in secrets]
    objects += [trial.render_live(cluster, slurm_conf.files(cluster), ConfigState())]
    objects += render_cluster.render_accounted(cluster, DEFAULTS, "0123456789abcdef")
    return {
        f"{number:02}-{each['kind'].lower()}-{each['metadata']['name']}.yaml": each
        for number, each in enumerate(objects)
    }


def for_users(case: str) -> dict[str, Object]:
    """The objects of the users' slurmrestd, a Secret with a token, and the NetworkPolicies and the slurm.conf that know of them."""
    cluster = Cluster("slurm", "demo", "uid-cluster", SlurmClusterSpec.model_validate(USERS[case]), accounted=True)
    files = slurm_conf.files(cluster)
    name = slurm_conf.generation(cluster)
    state = ConfigState(name, name, 1.0, name, 1.0, 0, fixed=diff.fixed(files))
    objects = [user_tokens.render_token(cluster, "ci-token", "token", TokenNote("ci", 1800.0, 1800.0, "7"))]
    objects += [trial.render_live(cluster, files, state)]
    objects += [
        each for each in network.render_network(cluster, DEFAULTS.operator_namespace) if each["kind"] == "NetworkPolicy"
    ]
    objects += user_rest_api.render_rest_users(cluster, DEFAULTS, state)
    return {
        f"{number:02}-{each['kind'].lower()}-{each['metadata']['name']}.yaml": each
        for number, each in enumerate(objects)
    }


#: Backups of a cluster with accounting.
BACKUPS = {
    "backup": {
        "clusterRef": {"name": "demo"},
        "schedule": "@daily",
        "retention": {"keepLast": 3, "keepWeekly": 4},
        "repository": {"claimName": "backups", "path": "demo", "password": {"secretName": "restic", "key": "word"}},
    },
    "backup_s3": {
        "clusterRef": {"name": "demo"},
        "repository": {
            "s3": {
                "endpoint": "https://s3.example.com",
                "bucket": "backups",
                "prefix": "slurm/one",
                "region": "eu-1",
                "credentialsSecretName": "store",
                "ca": {"secretName": "store-ca"},
            },
            "password": {"secretName": "restic"},
        },
    },
}


def backed_up(case: str) -> dict[str, Object]:
    """The Job of a backup by request, and its ConfigMap."""
    cluster = Cluster("slurm", "demo", "uid-cluster", SlurmClusterSpec.model_validate(EMBEDDED[0]), accounted=True)
    backup = Backup("slurm", "nightly", "uid-backup", SlurmBackupSpec.model_validate(BACKUPS[case]))
    inputs = render_backup.AttemptInputs("before-the-upgrade", "24.11.5", "" if case == "backup" else 8 * "0123abcd")
    objects = [render_backup.render_objects(backup, cluster, "[]")]
    objects += [render_backup.render_job(backup, cluster, DEFAULTS, inputs)]
    return {
        f"{number:02}-{each['kind'].lower()}-{each['metadata']['name']}.yaml": each
        for number, each in enumerate(objects)
    }


SUBMOUNTS = {
    "jail": {
        "submounts": [
            {"path": "/home/team/data", "hostPath": {"path": "/mnt/data"}, "readOnly": True},
            {"path": "/home", "claimName": "homes"},
            {"path": "/home/team", "claimName": "team", "subPath": "a/b"},
        ]
    }
}
NODE_SUBMOUNTS = {
    "clusterRef": {"name": "demo"},
    "submounts": [
        {"path": "/ram", "tmpfs": {"size": "8Gi"}},
        {"path": "/local", "volume": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}},
        {"path": "/home/team/cache", "hostPath": {"path": "/mnt/nvme"}},
        {"path": "/tmp", "hostPath": {"path": "/mnt/nvme/tmp"}, "perJob": True},
    ],
}

#: Specs whose mount plans are written down, as `soperator explain jail` shows them.
PLANS = {
    "cpu": ({}, {"clusterRef": {"name": "demo"}}),
    "munge": ({"auth": {"type": "munge"}}, {"clusterRef": {"name": "demo"}, "shmSize": "1Gi"}),
    "submounts": (SUBMOUNTS, NODE_SUBMOUNTS),
    "per-node": (PER_NODE[0], {"clusterRef": {"name": "demo"}}),
    "nvidia": ({}, {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", "count": 8}}),
    "amd": ({}, {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "amd", "count": 8}}),
    "driver": (
        {},
        {
            "clusterRef": {"name": "demo"},
            "gpu": {"vendor": "nvidia", "count": 1, "driver": {"hostPath": {"path": "/run/nvidia/driver"}}},
        },
    ),
    "cdi": ({}, {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", "count": 1, "driver": {"cdi": {}}}}),
}


def planned(case: str) -> str:
    """The plans of a case, login's and the NodeSet's."""
    cluster_spec, nodeset_spec = PLANS[case]
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(cluster_spec))
    nodeset = NodeSet("slurm", "worker", "uid", NodeSetSpec.model_validate(nodeset_spec))
    tables = table("login nodes", login_plan(cluster)), table("nodes of NodeSet worker", worker_plan(cluster, nodeset))
    return "\n\n".join(tables) + "\n"
