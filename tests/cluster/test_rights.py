"""The rights of the pods' containers: exactly those that are written down, and none of them could be left out."""

from typing import Any

import pytest

from soperator.render.parts import capabilities
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

#: By the numbers of capabilities(7).
NUMBERS = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
    "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "AUDIT_WRITE": 29, "SETFCAP": 31,
}  # fmt: skip
LOGIN = (*capabilities.JAIL, *capabilities.MAKER)
WORKER = (*LOGIN, *capabilities.ACCOUNTANT)

#: What works with a capability and not without it; run by sh in slurmd's container, `$f` is a file of user 1000.
USES = {
    "CHOWN": 'chown 1001 "$f"',
    "DAC_OVERRIDE": 'cat "$f"',
    "FOWNER": 'chmod 600 "$f"',
    "FSETID": 'chgrp 1000 "$g" && chmod 2755 "$g" && [ "$(stat -c %a "$g")" = 2755 ]',
    "KILL": 'kill -0 "$sleeper"',
    "SETGID": "setpriv --regid 1000 --clear-groups true",
    "SETUID": "setpriv --reuid 1000 true",
    "SETPCAP": "setpriv --bounding-set -net_raw true",
    "NET_BIND_SERVICE": """
        perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) && bind(S, pack_sockaddr_in(22, INADDR_ANY)) or exit 1'""",
    "SYS_CHROOT": "chroot / true",
    "SYS_PTRACE": 'cat "/proc/$sleeper/io"',
    "SYS_ADMIN": "unshare -m mount -t tmpfs none /mnt",
    "SETFCAP": """
        perl -e 'my ($file, $name, $caps) = ($ARGV[0], "security.capability", pack("V5", 0x2000000, 1024, 0, 0, 0));
            exit(syscall(188, $file, $name, $caps, 20, 0) != 0)' "$g" """,
}
#: A new network namespace has the kernel's own limit of low ports, whatever the runtime set in the pod's.
AROUND = {"NET_BIND_SERVICE": "unshare -n"}
SCRIPT = """
export TMPDIR=/mnt/tmp
setpriv --reuid 1000 --clear-groups sleep 60 & sleeper=$!
for use in "$@"; do
    name=${use%%=*} word=${use#*=} around=
    case $name in *@*) around=${name#*@} name=${name%%@*};; esac
    for taken in none $(echo $name | tr A-Z a-z); do
        f=$(mktemp) g=$(mktemp); chmod 000 "$f"; chown 1000 "$f"
        export f g sleeper
        case $taken in none) limit=;; *) limit="setpriv --bounding-set -$taken --inh-caps -$taken";; esac
        if $around $limit sh -c "$word" >/dev/null 2>&1; then echo $name $taken done; else echo $name $taken refused; fi
        rm -f "$f" "$g"
    done
done
kill $sleeper
"""


@pytest.fixture(scope="module")
def ends(lab: Lab) -> dict[str, tuple[str, str]]:
    """Of each capability how its use ended with it and without it, in the container of slurmd."""
    words = [f"{name}{'@' + AROUND[name] if name in AROUND else ''}={use}" for name, use in USES.items()]
    said = lab.kubectl("exec", f"{lab.cluster}-worker-0", "-c", "slurmd", "--", "sh", "-c", SCRIPT, "sh", *words)
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        name, _, end = line.split()
        found.setdefault(name, []).append(end)
    return {name: (with_it, without) for name, (with_it, without) in found.items()}


@pytest.mark.parametrize("capability", [name for name in WORKER if name != "AUDIT_WRITE"])
def test_a_capability_is_needed(ends: dict[str, tuple[str, str]], capability: str) -> None:
    """What the container must be able to do works with it and is refused without it; AUDIT_WRITE needs a Node with audit."""
    assert ends[capability] == ("done", "refused")


def test_containers_run_with_exactly_the_rights_that_are_written_down(lab: Lab) -> None:
    """The first process of each container has the capabilities of the list and a seccomp filter; who mounts nothing can gain nothing."""
    makers = {name: sum(1 << NUMBERS[each] for each in those) for name, those in (("slurmd", WORKER), ("sshd", LOGIN))}
    for role in ("controller", "rest", "login", "worker"):
        for name, pod in lab.pods(role).items():
            for container in [each["name"] for each in statuses(pod)]:
                status = lab.kubectl("exec", name, "-c", container, "--", "cat", "/proc/1/status")
                said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                mounts = container in makers
                got = (int(said["CapBnd"], 16), said["NoNewPrivs"], said["Seccomp"])
                assert got == (makers.get(container, 0), "0" if mounts else "1", "2"), f"{name} {container}"


def test_images_are_read_only(lab: Lab) -> None:
    """Nothing can be written into the image of a running container, by its root neither."""
    for name, container in ((f"{lab.cluster}-worker-0", "slurmd"), (f"{lab.cluster}-login-0", "sackd")):
        for path in ("/usr/bin/new", "/opt/soperator/lib/slurm/new.so", "/etc/ld.so.preload"):
            done = lab.tried("exec", name, "-c", container, "--", "sh", "-c", f"echo >> {path}")
            assert done.returncode, f"{name} {container}: {path} was written"
            assert container != "slurmd" or "Read-only file system" in done.stderr, done.stderr


def statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Those containers of a pod that run: init containers that ended are left out."""
    status = pod["status"]
    every = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return [each for each in every if "running" in each["state"]]
