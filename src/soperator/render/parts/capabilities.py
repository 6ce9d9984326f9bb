"""The capabilities that containers get, one by one, each with its reason. All others are dropped, the runtime's defaults included.

In a user namespace a capability is a right over what the pod itself owns; with the Node's own (`security.userNamespace: false`) it is one over
the Node, and this list, the seccomp profile and the mount namespace are all that holds. docs/explain/isolation.md prints it, and
tests/cluster/test_rights.py takes each away and sees what stops.
"""

from collections.abc import Mapping
from types import MappingProxyType

#: What root of the jail keeps: the list of spank/caps.c. A container cannot hand on what it does not have.
JAIL: Mapping[str, str] = MappingProxyType(
    {
        "CHOWN": "dpkg and useradd give files to users; slurmd gives a job's folder to its user",
        "DAC_OVERRIDE": "root of the jail reads and writes the users' files",
        "FOWNER": "root of the jail changes modes of the users' files",
        "FSETID": "dpkg keeps setgid bits when it unpacks",
        "KILL": "slurmd signals the tasks of users, root of the jail the processes that it sees",
        "SETGID": "slurmstepd and sshd become the user, sudo another one",
        "SETUID": "slurmstepd and sshd become the user, sudo another one",
        "SETPCAP": "the plugin takes capabilities out of what a user's programs can ever have",
        "NET_BIND_SERVICE": "sshd listens on port 22, where the runtime does not open low ports to everybody",
        "SYS_CHROOT": "the jail becomes the root; sandboxes of apt and sshd",
        "AUDIT_WRITE": "sshd and sudo end where an audit record is refused (only with the Node's own user namespace)",
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
        "DAC_OVERRIDE": "files are written in folders of others",
        "FOWNER": "modes and times of files of others are set",
        "FSETID": "setgid bits are kept",
        "SETFCAP": "capabilities of files are kept",
    }
)
