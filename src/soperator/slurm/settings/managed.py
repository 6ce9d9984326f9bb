"""The settings of Slurm's files that the operator owns, each with the field in which a person sets it instead.

A setting is owned when another value would contradict what the operator renders: with two writers the next restart may be an outage. Everything else
in slurm.conf(5) is the administrator's. Two lists are shared: a person's values are merged with ours.
"""

from collections.abc import Mapping
from types import MappingProxyType

_FIXED = "the operator sets it and relies on it: remove the line"
_AUTH = "it follows from auth.type: set that, and remove the line"
_NAME = "it follows from metadata.name: remove the line"

#: Settings of slurm.conf, by their names in slurm.conf(5).
OWNED: Mapping[str, str] = MappingProxyType(
    {
        "AuthAltParameters": _AUTH,
        "AuthAltTypes": _AUTH,
        "AuthInfo": _AUTH,
        "AuthType": _AUTH,
        "BackupAddr": _FIXED,
        "BackupController": _FIXED,
        "ClusterName": _NAME,
        "ControlAddr": _NAME,
        "ControlMachine": _NAME,
        "CredType": _AUTH,
        "DownNodes": "nodes register by themselves: set the state of a node with scontrol, and remove the line",
        "JobContainerType": "its plugin puts jobs into the jail: remove the line",
        "MaxNodeCount": _FIXED,
        "NodeName": "nodes register by themselves: make a NodeSet, and remove the line",
        "NodeSet": "each NodeSet object is one: make a NodeSet, and remove the line",
        "PartitionName": "say it in spec.partitions, its settings in options there, and remove the line",
        "PlugStackConfig": "its plugin puts jobs into the jail: remove the line",
        "PluginDir": "plugins come with the image: remove the line",
        "ReturnToService": "pods change their hosts, and nodes must come back by themselves: remove the line",
        "SelectType": "nodes that register by themselves need select/cons_tres: remove the line",
        "SlurmctldAddr": _NAME,
        "SlurmctldHost": _NAME,
        "SlurmctldPidFile": _FIXED,
        "SlurmctldPort": _FIXED,
        "SlurmctldPortRange": _FIXED,
        "SlurmdParameters": "say it in extraConf of the NodeSet, and remove the line",
        "SlurmdPidFile": _FIXED,
        "SlurmdPort": _FIXED,
        "SlurmdSpoolDir": _FIXED,
        "SlurmdUser": _FIXED,
        "SlurmUser": _FIXED,
        "StateSaveLocation": "it is the claim of controller.state: remove the line",
    }
)

_DATABASE = "slurmdbd is the operator's: say it in spec.accounting, and remove the line"

#: Settings of slurm.conf that are the operator's too where accounting is on.
ACCOUNTING: Mapping[str, str] = MappingProxyType(
    {
        "AccountingStorageBackupHost": _DATABASE,
        "AccountingStorageEnforce": "say it in spec.accounting.enforce, and remove the line",
        "AccountingStorageHost": _DATABASE,
        "AccountingStoragePass": _DATABASE,
        "AccountingStoragePort": _DATABASE,
        "AccountingStorageType": _DATABASE,
        "AccountingStorageUser": _DATABASE,
    }
)

#: The settings that are owned where the operator manages the topology.
TOPOLOGY: Mapping[str, str] = MappingProxyType(
    {"TopologyPlugin": "it follows from spec.topology.type: remove the line"}
)

#: Lists of slurm.conf that hold values of ours beside the administrator's. A trigger's program would run in the container with the keys, and root of
#: the jail can become the user who may set triggers.
SHARED: Mapping[str, str] = MappingProxyType(
    {"GresTypes": "gpu", "SlurmctldParameters": "enable_configless,disable_triggers"}
)

#: Settings of a node that the NodeSet determines, for `slurmd --conf`.
OWNED_NODE: Mapping[str, str] = MappingProxyType(
    {
        "CPUs": "say it in resources: Slurm's node is as large as the pod",
        "Feature": "say it in features",
        "Features": "say it in features",
        "Gres": "say it in gpu",
        "NodeAddr": "the pod's address follows its registration: remove it",
        "NodeHostname": "it is the pod's host name: remove it",
        "NodeName": "it is the pod's host name: remove it",
        "Port": _FIXED.replace("the line", "it"),
        "RealMemory": "say it in resources: Slurm's node is as large as the pod",
        "State": "set the state of a node with scontrol: remove it",
        "Weight": "say it in weight",
    }
)

#: Settings of a partition that have a field of their own.
OWNED_PARTITION: Mapping[str, str] = MappingProxyType(
    {
        "Default": "say it in default",
        "Hidden": "say it in hidden",
        "Nodes": "say it in nodeSets and features",
        "PartitionName": "say it in name",
    }
)
