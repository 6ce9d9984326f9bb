"""Inputs that must be refused at `kubectl apply`, each with a part of the sentence that says why.

`tests/unit/api` feeds them to lint, `tests/cluster` to a real API server: what one refuses, the other must refuse too.
"""

from dataclasses import dataclass
from typing import Any

API_VERSION = "slurm.soperator.io/v1alpha1"


@dataclass(frozen=True)
class Bad:
    """A spec that is wrong in one place: the field to blame, and words of the API server's and of lint's message."""

    kind: str
    spec: dict[str, Any]
    field: str
    server: str
    lint: str = ""
    name: str = "demo"

    @property
    def object(self) -> dict[str, Any]:
        """The whole object."""
        return {"apiVersion": API_VERSION, "kind": self.kind, "metadata": {"name": self.name}, "spec": self.spec}

    @property
    def said(self) -> str:
        """What lint says; the same as the server where both share the rule."""
        return self.lint or self.server


def _submount(**said: Any) -> dict[str, Any]:
    return {"jail": {"submounts": [{"path": "/data", "claimName": "data", **said}]}}


def _memory(size: object = "1Gi", **said: Any) -> dict[str, Any]:
    return {"jail": {"submounts": [{"path": "/data", "tmpfs": {"size": size}, **said}]}}


def _service(path: str, **said: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"service": said}
    for key in reversed(path.split(".")):
        spec = {key: spec}
    return spec


def _cluster(field: str, server: str, spec: dict[str, Any], lint: str = "") -> Bad:
    return Bad("SlurmCluster", spec, field, server, lint)


def _nodeset(field: str, server: str, spec: dict[str, Any], lint: str = "") -> Bad:
    return Bad("NodeSet", {"clusterRef": {"name": "demo"}, **spec}, field, server, lint, name="worker")


CASES = (
    _cluster("spec.login.replicsa", "replicsa", {"login": {"replicsa": 1}}, "did you mean replicas?"),
    _cluster("spec.login.replicas", "Invalid value", {"login": {"replicas": -1}}, "greater than or equal to 0"),
    _cluster("spec.login.replicas", "must be of type integer", {"login": {"replicas": "1"}}, "valid integer"),
    _cluster("spec.auth.type", "supported values", {"auth": {"type": "none"}}, "choose one of 'slurm' or 'munge'"),
    _cluster("spec.jail.claim.size", "should match", {"jail": {"claim": {"size": "many"}}}, "the value must match"),
    *(
        _cluster(
            "spec.health.replace.condition",
            "should match",
            {"health": {"replace": {"condition": own}}},
            "the value must match",
        )
        for own in ("NetworkUnavailable", "Ready", "DiskPressure", "/Bad", "example.com/")
    ),
    *(
        _cluster("spec.health.replace.condition", "with your own domain", {"health": {"replace": {"condition": own}}})
        for own in ("node.kubernetes.io/unschedulable", "kubernetes.io/Ready", "x.k8s.io/Ready")
    ),
    _cluster("spec.jail.refill.keep", "normalized paths", {"jail": {"refill": {"keep": ["/home/"]}}}),
    _cluster("spec.jail.refill.keep", "must be replaced", {"jail": {"refill": {"keep": ["/home", "/usr"]}}}),
    _cluster("spec.jail.refill.keep", "must be replaced", {"jail": {"refill": {"keep": ["/proc/1"]}}}),
    _cluster("spec.jail.refill", "needs populate: Once", {"jail": {"populate": "Never", "refill": {"request": "a"}}}),
    _cluster(
        "spec.jail.refill.request", "should match", {"jail": {"refill": {"request": "a b"}}}, "the value must match"
    ),
    _cluster("spec.jail.submounts", "exactly one of", _submount(tmpfs={"size": "1Gi"})),
    _cluster("spec.jail.submounts", "exactly one of", {"jail": {"submounts": [{"path": "/data"}]}}),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/proc/x")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/opt/soperator")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/opt")),
    _cluster("spec.jail.submounts[0].path", "must be normalized", _submount(path="/data/")),
    _cluster("spec.jail.submounts[0].path", "must be normalized", _submount(path="/data/../dev")),
    _cluster("spec.jail.submounts[0].path", "should match", _submount(path="data"), "the value must match"),
    _cluster("spec.jail.submounts[0].path", "should match", _submount(path="/a\tb"), "the value must match"),
    _cluster("spec.jail.submounts[0].path", "must be normalized", _submount(path="/data//x")),
    _cluster("spec.jail.submounts[0].path", "must be normalized", _submount(path="/./data")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/etc/resolv.conf")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/etc")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/var/spool/slurmd/x")),
    _cluster("spec.jail.submounts[0].claimName", "should match", _submount(claimName="a\tb"), "the value must match"),
    _cluster("spec.jail.submounts[0].subPath", "inside the claim", _submount(subPath="a/../../b")),
    _cluster("spec.jail.submounts[0].subPath", "inside the claim", _submount(subPath="/a")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/tmp/x")),
    _cluster("spec.jail.submounts[0].path", "mounts of every node", _submount(path="/var/lib")),
    _cluster("spec.jail.submounts[0].perJob", "a writable folder", _submount(perJob=True, readOnly=True)),
    _cluster("spec.jail.submounts[0].perJob", "private to each job anyway", _memory(perJob=True)),
    _cluster("spec.jail.submounts[0].tmpfs.size", "without a limit", _memory(size=0)),
    _cluster("spec.jail.submounts[0].tmpfs.size", "without a limit", _memory(size="100m")),
    _cluster("spec.jail.submounts[0].tmpfs.size", "should match", _memory(size="-1Gi"), "the value must match"),
    _cluster("spec.jail.submounts[0].readOnly", "stays empty", _memory(readOnly=True)),
    _cluster(
        "spec.jail.submounts[0].subPath",
        "set claimName",
        {"jail": {"submounts": [{"path": "/data", "subPath": "a", "tmpfs": {"size": "1Gi"}}]}},
    ),
    _cluster(
        "spec.jail.submounts[0].hostPath.path",
        "must not contain",
        {"jail": {"submounts": [{"path": "/data", "hostPath": {"path": "/a/../b"}}]}},
    ),
    _cluster(
        "spec.jail.submounts[1]",
        "Duplicate value",
        {"jail": {"submounts": [{"path": "/data", "claimName": "a"}, {"path": "/data", "claimName": "b"}]}},
        "another volume is mounted at this path",
    ),
    _cluster(
        "spec.partitions",
        "at most one",
        {"partitions": [{"name": "a", "default": True}, {"name": "b", "default": True}]},
    ),
    _cluster(
        "spec.partitions[1]",
        "Duplicate value",
        {"partitions": [{"name": "a"}, {"name": "a"}]},
        "another partition has this name",
    ),
    _cluster("spec.partitions[0].name", "must not be DEFAULT", {"partitions": [{"name": "Default"}]}),
    _cluster("spec.partitions[0].options", "its own field", {"partitions": [{"name": "a", "options": {"Nodes": "x"}}]}),
    _cluster(
        "spec.login.service.nodePort",
        "choose one of them",
        {"login": {"service": {"type": "ClusterIP", "nodePort": 30022}}},
    ),
    _cluster(
        "spec.login.service.externalTrafficPolicy",
        "choose one of them",
        {"login": {"service": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}}},
    ),
    _cluster(
        "spec.login.service.loadBalancerSourceRanges",
        "needs type LoadBalancer",
        {"login": {"service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}},
    ),
    *(
        _cluster(f"spec.config.{path}[0]{field}", server, {"config": {path: [said]}}, lint)
        for path in ("files", "prolog", "taskEpilog")
        for field, said, server, lint in (
            ("", {"name": "a"}, "exactly one of text", ""),
            (
                "",
                {"name": "a", "text": "#!/bin/sh", "secretKeyRef": {"name": "b", "key": "c"}},
                "exactly one of text",
                "",
            ),
            (".name", {"name": "../a", "text": "#!/bin/sh"}, "should match", "the value must match"),
            (".name", {"name": "..data", "text": "#!/bin/sh"}, "should match", "the value must match"),
            (".name", {"name": "a\n", "text": "#!/bin/sh"}, "should match", "the value must match"),
            (
                ".configMapKeyRef.key",
                {"name": "a", "configMapKeyRef": {"name": "b", "key": "c/d"}},
                "should match",
                "the value must match",
            ),
        )
    ),
    _cluster(
        "spec.config.files[1]",
        "Duplicate value",
        {"config": {"files": [{"name": "a", "text": "x"}, {"name": "a", "text": "y"}]}},
        "another entry of the list has this name",
    ),
    *(
        _cluster(f"spec.{path}.service.{field}", words, _service(path, **said))
        for path in ("login", "rest.users")
        for field, words, said in (
            ("loadBalancerClass", "needs type LoadBalancer", {"type": "ClusterIP", "loadBalancerClass": "a.b/c"}),
            ("ipFamilies", "the same family twice", {"type": "ClusterIP", "ipFamilies": ["IPv6", "IPv6"]}),
            ("ipFamilies", "needs ipFamilyPolicy", {"type": "ClusterIP", "ipFamilies": ["IPv6", "IPv4"]}),
        )
    ),
    _cluster(
        "spec.login.service.loadBalancerClass",
        "should match",
        _service("login", type="LoadBalancer", loadBalancerClass="a b"),
        "the value must match",
    ),
    _cluster(
        "spec.rest.users.service.externalTrafficPolicy",
        "choose one of them",
        _service("rest.users", externalTrafficPolicy="Local"),
    ),
    Bad("SlurmCluster", {}, "metadata.name", "at most 30 characters", name="a" * 31),
    Bad("SlurmCluster", {}, "metadata.name", "must begin with a letter", name="1a"),
    Bad("SlurmCluster", {}, "metadata.name", "must begin with a letter", name="a.b"),
    _nodeset("spec.gpu.count", "need each other", {"gpu": {"count": 1}}),
    _nodeset("spec.gpu.count", "need each other", {"gpu": {"vendor": "amd"}}),
    _nodeset("spec.gpu.vendor", "describe GPUs", {"gpu": {"type": "h100"}}),
    _nodeset("spec.gpu.shards", "a multiple of", {"gpu": {"vendor": "nvidia", "count": 2, "shards": 7}}),
    _nodeset("spec.gpu.shards", "a multiple of", {"gpu": {"shards": 8}}),
    _nodeset(
        "spec.preemptible",
        "by themselves",
        {"preemptible": {}, "powerSaving": {"maxNodes": 2}, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ),
    _nodeset(
        "spec.gpu.count",
        "set count 1",
        {"gpu": {"vendor": "nvidia", "count": 7, "resourceName": "nvidia.com/mig-1g.10gb"}},
    ),
    _nodeset("spec.replicas", "Invalid value", {"replicas": 10001}, "less than or equal to 10000"),
    _nodeset("spec.updateStrategy.maxUnavailable", "at least 1", {"updateStrategy": {"maxUnavailable": 0}}),
    _nodeset(
        "spec.updateStrategy.maxUnavailable",
        "should match",
        {"updateStrategy": {"maxUnavailable": "some"}},
        "the value must match",
    ),
    _nodeset(
        "spec.updateStrategy.window.schedule",
        "should match",
        {"updateStrategy": {"window": {"schedule": "at night"}}},
        "the value must match",
    ),
    _nodeset("spec.drain.onTimeout", "set timeout", {"drain": {"onTimeout": "Cancel"}}),
    _nodeset("spec.drain.timeout", "should match", {"drain": {"timeout": "90"}}, "the value must match"),
    _nodeset(
        "spec.nodeFailure.maxReplaced", "percentage", {"nodeFailure": {"maxReplaced": -1}}, "the value must match"
    ),
    _nodeset("spec.extraConf", "should match", {"extraConf": "A=$(id)"}, "the value must match"),
    _nodeset("spec.powerSaving.min", "raise maxNodes", {"powerSaving": {"minNodes": 3, "maxNodes": 2}}),
    _nodeset("spec.powerSaving.max", "Required value", {"powerSaving": {"minNodes": 1}}, "this field is required"),
    _nodeset(
        "spec.powerSaving.resumeTimeout", "at least 30s", {"powerSaving": {"maxNodes": 2, "resumeTimeout": "29s"}}
    ),
    _nodeset(
        "spec.replicas",
        "set powerSaving.minNodes and maxNodes",
        {"replicas": 2, "powerSaving": {"maxNodes": 2}},
    ),
    _nodeset("spec.features[0]", "should match", {"features": ["a b"]}, "the value must match"),
    _cluster("spec.jail.perNode", "its own claim", {"jail": {"perNode": True, "claim": {"name": "a"}}}),
    _cluster("spec.jail.perNode", "remove refill", {"jail": {"perNode": True, "refill": {"request": "a"}}}),
    _cluster("spec.jail.perNode", "from the image", {"jail": {"perNode": True, "populate": "Never"}}),
    _nodeset("spec.gpu.driver", "one source", {"gpu": {"driver": {"cdi": {}, "hostPath": {"path": "/a"}}}}),
    _nodeset("spec.shmSize", "without a limit", {"shmSize": "0"}),
    _nodeset("spec.submounts[0].path", "mounts of every node", {"submounts": [{"path": "/dev/shm", "claimName": "a"}]}),
    Bad("NodeSet", {"replicas": 1}, "spec.cluster", "Required value", "this field is required", name="worker"),
    Bad("NodeSet", {"clusterRef": {"name": "demo"}}, "metadata.name", "at most 40 characters", name="a" * 41),
    *(
        Bad("NodeSet", {"clusterRef": {"name": "demo"}}, "metadata.name", "must not be one of", name=name)
        for name in ("accounting", "controller", "database", "login", "rest", "all", "default")
    ),
    Bad("NodeSet", {"clusterRef": {"name": "demo"}}, "metadata.name", "without dots", name="a.b"),
    _cluster(
        "spec.accounting.externalDatabase",
        "only one database is possible",
        {"accounting": {"externalDatabase": {"host": "db", "password": {"secretName": "db"}}, "mariadbOperator": {}}},
    ),
    _cluster("spec.accounting.archive", "archive needs purge", {"accounting": {"archive": {"claimName": "old"}}}),
    _cluster(
        "spec.accounting.purge.jobs",
        "should match",
        {"accounting": {"purge": {"jobs": "1year"}}},
        "the value must match",
    ),
    _cluster(
        "spec.accounting.externalDatabase.password",
        "Required value",
        {"accounting": {"externalDatabase": {"host": "db"}}},
        "required",
    ),
    _cluster(
        "spec.rest.users.service.nodePort",
        "choose one of them",
        {"rest": {"users": {"service": {"type": "ClusterIP", "nodePort": 30443}}}},
    ),
    _cluster("spec.rest.users.service", "unencrypted", {"rest": {"users": {"service": {"type": "NodePort"}}}}),
    _cluster(
        "spec.rest.users.tokens[0].user",
        "should match",
        {"rest": {"users": {"tokens": [{"user": "a b", "secretName": "a"}]}}},
        "the value must match",
    ),
    _cluster("spec.accounting.enforce", "Unsupported value", {"accounting": {"enforce": ["all"]}}, "choose one of"),
)
