"""The settings of Slurm's files that the operator owns, each with the field that sets it instead.

The operator owns a setting if another value would contradict the rendered files: with two writers the next restart may be an outage. All other
settings of slurm.conf(5) belong to the administrator. Two lists are shared: the operator merges its values with the administrator's.
"""

from collections.abc import Mapping
from types import MappingProxyType

_FIXED = "the operator sets it and relies on it: remove the line"
_AUTH = "it follows from auth.type: set that field, and remove the line"
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
        "NodeName": "nodes register by themselves: create a NodeSet, and remove the line",
        "NodeSet": "each NodeSet object defines one: create a NodeSet, and remove the line",
        "PartitionName": "define it in spec.partitions, with its settings in options, and remove the line",
        "PlugStackConfig": "its plugin puts jobs into the jail: remove the line",
        "PluginDir": "plugins come with the image: remove the line",
        "ReturnToService": "pods change their hosts, and nodes must register again by themselves: remove the line",
        "SelectType": "nodes that register by themselves need select/cons_tres: remove the line",
        "SlurmctldAddr": _NAME,
        "SlurmctldHost": _NAME,
        "SlurmctldPidFile": _FIXED,
        "SlurmctldPort": _FIXED,
        "SlurmctldPortRange": _FIXED,
        "SlurmdParameters": "set it in extraConf of the NodeSet, and remove the line",
        "SlurmdPidFile": _FIXED,
        "SlurmdPort": _FIXED,
        "SlurmdSpoolDir": _FIXED,
        "SlurmdUser": _FIXED,
        "SlurmUser": _FIXED,
        "StateSaveLocation": "the claim of controller.state holds it: remove the line",
    }
)

_DATABASE = "the operator runs slurmdbd: set it in spec.accounting, and remove the line"

#: Settings of slurm.conf that are the operator's too where accounting is on.
ACCOUNTING: Mapping[str, str] = MappingProxyType(
    {
        "AccountingStorageBackupHost": _DATABASE,
        "AccountingStorageEnforce": "set it in spec.accounting.enforce, and remove the line",
        "AccountingStorageHost": _DATABASE,
        "AccountingStoragePass": _DATABASE,
        "AccountingStoragePort": _DATABASE,
        "AccountingStorageType": _DATABASE,
        "AccountingStorageUser": _DATABASE,
    }
)

_ACCOUNTING = "set it in spec.accounting, and remove the line"
_PURGE = "set it in spec.accounting.purge and archive, and remove the line"
#: Settings of slurmdbd.conf.
SLURMDBD: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType"), _AUTH),
        **dict.fromkeys(
            ("DbdAddr", "DbdBackupHost", "DbdHost", "DbdPort", "PidFile", "PluginDir", "SlurmUser"), _FIXED
        ),
        **{
            f"Storage{each}": _ACCOUNTING
            for each in ("BackupHost", "Host", "Loc", "Parameters", "Pass", "PassScript", "Port", "Type", "User")
        },
        "ArchiveDir": _PURGE,
        **{
            key: _PURGE
            for each in ("Event", "Job", "Resv", "Step", "Suspend", "TXN", "Usage")
            for key in (f"Purge{each}After", f"Purge{each}Months", f"Archive{each}", f"Archive{each}s")
        },
        "LogFile": "slurmdbd writes its log to the output of its pod: remove the line",
    }
)

#: Settings of slurmdbd.conf(5) that are the administrator's, by which a misspelt one is found.
SLURMDBD_KNOWN = frozenset(
    {
        *("AllowNoDefAcct", "AllResourcesAbsolute", "ArchiveScript", "CommitDelay", "CommunicationParameters"),
        *("DebugFlags", "DebugLevel", "DebugLevelSyslog", "DefaultQOS", "DisableCoordDBD", "HashPlugin"),
        *("LogTimeFormat", "MaxQueryTimeRange", "MessageTimeout", "Parameters", "PrivateData", "TCPTimeout"),
        *("TLSParameters", "TLSType", "TrackSlurmctldDown", "TrackWCKey", *SLURMDBD),
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
        "CPUs": "set it in resources: a Slurm node is as large as its pod",
        "Feature": "set it in features",
        "Features": "set it in features",
        "Gres": "set it in gpu",
        "NodeAddr": "slurmd registers with the pod's address: remove it",
        "NodeHostname": "it is the pod's host name: remove it",
        "NodeName": "it is the pod's host name: remove it",
        "Port": _FIXED.replace("the line", "it"),
        "RealMemory": "set it in resources: a Slurm node is as large as its pod",
        "State": "remove it, and set the state of a node with scontrol",
        "Weight": "set it in weight",
    }
)

#: Settings of a partition that have a field of their own.
OWNED_PARTITION: Mapping[str, str] = MappingProxyType(
    {
        "Default": "set it in default",
        "Hidden": "set it in hidden",
        "Nodes": "set it in nodeSets and features",
        "PartitionName": "set it in name",
    }
)
