"""The clusters whose objects are written down: a minimal one, and one that uses every field."""

import re

from soperator.api.cluster import SlurmClusterSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.cli.explain_jail import table
from soperator.render import cluster as render_cluster
from soperator.render import config, generation, gpus, limits, points, populate, worker
from soperator.render.keys import render_secret, wanted_files
from soperator.render.model import Cluster, Defaults, NodeSet, Object
from soperator.render.plan import login_plan, worker_plan
from soperator.slurm import effects
from soperator.slurm.transaction import State

#: The hash at the end of the name of a mount plan.
PLAN = re.compile(r"-[0-9a-f]{16}$")

DEFAULTS = Defaults(
    slurm="registry.test/slurm:1", login="registry.test/login:1", munge="registry.test/munge:1",
    populate="registry.test/populate:1", jail="registry.test/jail:1", sssd="registry.test/sssd:1",
)  # fmt: skip

MINIMAL = ({}, {"worker": {"cluster": "demo", "replicas": 2}})

FULL_CLUSTER = {
    "images": {"slurm": "my/slurm:2", "pullPolicy": "Always", "pullSecrets": ["registry"]},
    "auth": {"type": "munge", "keepKeys": True},
    "directory": {"secret": "ldap", "resources": {"requests": {"memory": "64Mi"}}},
    "security": {"userNamespace": False},
    "jail": {
        "claim": {"name": "shared"},
        "image": "my/jail:2",
        "submounts": [
            {"path": "/home/data", "hostPath": {"path": "/mnt/data"}, "readOnly": True},
            {"path": "/home", "claim": "homes", "subPath": "team"},
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
            "sourceRanges": ["10.0.0.0/8"],
            "keepClientAddress": True,
        },
        "passwords": True,
        "rootAuthorizedKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH8xk0x admin"],
        "resources": {"limits": {"memory": "4Gi"}},
    },
    "rest": {"replicas": 2},
    "health": {"checks": "Drain", "interval": "2m", "maxOut": "5%", "skip": ["tmp-leftovers"]},
    "partitions": [
        {"name": "gpu", "nodeSets": ["h100"], "default": True, "options": {"MaxTime": "1-00:00:00"}},
        {"name": "all", "hidden": True},
    ],
    "config": {
        "slurm": "SchedulerParameters=bf_continue\nJobSubmitPlugins=require_timelimit",
        "gres": "AutoDetect=nvidia",
        "topology": "SwitchName=leaf Nodes=h100-[0-15]",
        "jobSubmit": "function slurm_job_submit(job, partitions, uid)\n    return slurm.SUCCESS\nend\n"
        "function slurm_job_modify(job, record, partitions, uid)\n    return slurm.SUCCESS\nend",
        "prolog": "#!/bin/sh\nlogger prolog of $SLURM_JOB_ID",
        "epilog": "#!/bin/sh\nlogger epilog of $SLURM_JOB_ID",
    },
}
FULL_NODESET = {
    "cluster": "demo",
    "replicas": 1,
    "image": "my/slurmd-cuda:2",
    "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
    "gpu": {"vendor": "nvidia", "count": 8, "type": "h100", "driver": {"cdi": {"root": "/run/nvidia/driver/usr"}}},
    "rdma": {"resources": {"rdma/hca": "1"}, "infiniband": True},
    "features": ["nvlink"],
    "weight": 10,
    "slurmdConf": "MemSpecLimit=512",
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
            "submounts": [{"path": "/home", "claim": "homes"}, {"path": "/data", "claim": "data"}],
        }
    },
    {"worker": {"cluster": "demo", "submounts": [{"path": "/home/cache", "tmpfs": {"size": "1Gi"}}]}},
)

GPUS = (
    {},
    {
        "h100": {"cluster": "demo", "gpu": {"vendor": "nvidia", "count": 8, "type": "h100"}},
        "mi300": {"cluster": "demo", "gpu": {"vendor": "amd", "count": 1}},
    },
)

CASES = {"minimal": MINIMAL, "full": (FULL_CLUSTER, {"h100": FULL_NODESET}), "per-node": PER_NODE, "gpus": GPUS}


def rendered(case: str) -> dict[str, Object]:
    """Every object of a case by the file that holds it."""
    cluster_spec, nodesets = CASES[case]
    members = {name: NodeSetSpec.model_validate(spec) for name, spec in nodesets.items()}
    spec = SlurmClusterSpec.model_validate(cluster_spec)
    cluster = Cluster("slurm", "demo", "uid-cluster", spec, limits.shares(members), gpus.counted(members))
    objects = [
        render_secret(cluster, name, dict.fromkeys(files, b"key")) for name, files in wanted_files(cluster).items()
    ]
    name, files = config.generation(cluster), config.files(cluster)
    state = State(name, name, 1.0, name, 1.0, 0, fixed=effects.fixed(files))
    objects += render_cluster.render_cluster(cluster, DEFAULTS, jail_ready=True, state=state)
    claims = sum(1 for each in objects if each["kind"] in ("Secret", "PersistentVolumeClaim"))
    objects.insert(claims, generation.render_live(cluster, files, state))
    objects += populate.render_populate(cluster, DEFAULTS)
    members = [
        NodeSet("slurm", name, f"uid-{name}", NodeSetSpec.model_validate(spec)) for name, spec in nodesets.items()
    ]
    objects += points.render_mount_points(cluster, members, DEFAULTS, "uid-job")
    for nodeset in members:
        objects += [worker.render_plan(cluster, nodeset), worker.render_worker(cluster, nodeset, 0, DEFAULTS)]
    objects += [generation.render_trial(cluster, DEFAULTS, name)]
    return {
        f"{number:02}-{each['kind'].lower()}-{PLAN.sub('', each['metadata']['name'])}.yaml": each
        for number, each in enumerate(objects)
    }


SUBMOUNTS = {
    "jail": {
        "submounts": [
            {"path": "/home/team/data", "hostPath": {"path": "/mnt/data"}, "readOnly": True},
            {"path": "/home", "claim": "homes"},
            {"path": "/home/team", "claim": "team", "subPath": "a/b"},
        ]
    }
}
NODE_SUBMOUNTS = {
    "cluster": "demo",
    "submounts": [
        {"path": "/ram", "tmpfs": {"size": "8Gi"}},
        {"path": "/local", "volume": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}},
        {"path": "/home/team/cache", "hostPath": {"path": "/mnt/nvme"}},
        {"path": "/tmp", "hostPath": {"path": "/mnt/nvme/tmp"}, "perJob": True},
    ],
}

#: Specs whose mount plans are written down, as `soperator explain jail` shows them.
PLANS = {
    "cpu": ({}, {"cluster": "demo"}),
    "munge": ({"auth": {"type": "munge"}}, {"cluster": "demo", "shmSize": "1Gi"}),
    "submounts": (SUBMOUNTS, NODE_SUBMOUNTS),
    "per-node": (PER_NODE[0], {"cluster": "demo"}),
    "nvidia": ({}, {"cluster": "demo", "gpu": {"vendor": "nvidia", "count": 8}}),
    "amd": ({}, {"cluster": "demo", "gpu": {"vendor": "amd", "count": 8}}),
    "driver": (
        {},
        {
            "cluster": "demo",
            "gpu": {"vendor": "nvidia", "count": 1, "driver": {"hostPath": {"path": "/run/nvidia/driver"}}},
        },
    ),
    "cdi": ({}, {"cluster": "demo", "gpu": {"vendor": "nvidia", "count": 1, "driver": {"cdi": {}}}}),
}


def planned(case: str) -> str:
    """The plans of a case, login's and the NodeSet's."""
    cluster_spec, nodeset_spec = PLANS[case]
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(cluster_spec))
    nodeset = NodeSet("slurm", "worker", "uid", NodeSetSpec.model_validate(nodeset_spec))
    tables = table("login nodes", login_plan(cluster)), table("nodes of NodeSet worker", worker_plan(cluster, nodeset))
    return "\n\n".join(tables) + "\n"
