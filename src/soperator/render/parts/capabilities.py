"""The capabilities of containers, each with its reason. Containers drop all others, including the runtime's defaults.

In a user namespace a capability is a right over the pod's own resources. Without one (`security.userNamespace: false`) it is a right over the Node,
and only this list, the seccomp profile and the mount namespace isolate the pod. docs/explain/isolation.md prints the list, and
tests/cluster/test_rights.py removes each capability and checks the failure.
"""

from collections.abc import Mapping
from types import MappingProxyType

#: What root of the jail keeps: the list of spank/caps.c. A container cannot hand on what it does not have.
JAIL: Mapping[str, str] = MappingProxyType(
    {
        "CHOWN": "dpkg and useradd change the owner of files; slurmd gives a job's folder to its user",
        "DAC_OVERRIDE": "root of the jail reads and writes users' files",
        "FOWNER": "root of the jail changes the modes of users' files",
        "FSETID": "dpkg keeps setgid bits when it unpacks",
        "KILL": "slurmd signals the tasks of users, root of the jail the processes that it sees",
        "SETGID": "slurmstepd and sshd become the user, and sudo another user",
        "SETUID": "slurmstepd and sshd become the user, and sudo another user",
        "SETPCAP": "the plugin removes capabilities from the bounding set of a user's programs",
        "NET_BIND_SERVICE": "sshd listens on port 22, if the runtime restricts low ports",
        "SYS_CHROOT": "the jail becomes the root; sandboxes of apt and sshd",
        "AUDIT_WRITE": "sshd and sudo exit if an audit record is refused (only in the Node's own user namespace)",
        "SETFCAP": "dpkg sets capabilities of files",
    }
)

#: What makes the jail, and never reaches a user.
MAKER: Mapping[str, str] = MappingProxyType({"SYS_ADMIN": "mounts and namespaces of the jail"})

#: What lets slurmd's container see what jobs use: accounting by /proc, and with it the memory limit, finds nothing of a user without it.
ACCOUNTANT: Mapping[str, str] = MappingProxyType({"SYS_PTRACE": "slurmstepd reads /proc/<pid>/io of users' tasks"})

#: What binds the tasks of users to CPUs: `spec.jobs.bindCpus`.
BINDER: Mapping[str, str] = MappingProxyType({"SYS_NICE": "slurmstepd sets the affinity of a user's task"})

#: What copying and sealing a root file system takes.
POPULATE: Mapping[str, str] = MappingProxyType(
    {
        "CHOWN": "files get their owners",
        "DAC_OVERRIDE": "the container writes files in folders of other users",
        "FOWNER": "the container sets modes and times of other users' files",
        "FSETID": "setgid bits are kept",
        "SETFCAP": "the container keeps the capabilities of files",
    }
)
