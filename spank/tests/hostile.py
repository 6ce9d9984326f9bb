"""An attacker's inputs to Slurm: paths that lead out of the jail, and for each option of Slurm's commands its possible abuse.

A *way* is a path that leads, without protection, to SECRET, a file outside the jail that everybody may read, or to DROP, a folder there in
which everybody may write. So the mode of a file never protects it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote

OUTSIDE = "run/soperator/outside"
SECRET, DROP = f"{OUTSIDE}/secret", f"{OUTSIDE}/drop"
WORD = "the-secret-outside-the-jail"
OWN = "~/own"  # a program of the attacker's that says where it runs

#: How far behind the newest process the threads of the next slurmstepd may be, and which descriptors it may have.
AHEAD, DESCRIPTORS = range(4, 90, 5), range(3, 28)


@dataclass(frozen=True)
class Way:
    """A path with `{}` in place of the rest, without a leading slash.

    `@SLURMD@` and `@NUMBER@` are replaced. `through`: the users for which the path works without a jail, because the kernel itself blocks
    some.
    """

    name: str
    path: str
    through: tuple[str, ...] = ("root", "alice")


WAYS = (
    Way("plain", "/{}"),
    Way("dots", "/../../../../{}"),
    Way("dots behind a folder", "/etc/../../../{}"),
    Way("the pod's name for the jail", "/mnt/jail/root/../../../{}"),
    Way("own root", "/proc/self/root/{}"),
    Way("own working folder", "/proc/self/cwd/../../../../../../{}"),
    Way("own thread's root", "/proc/thread-self/root/{}"),
    Way("slurmd's root", "/proc/@SLURMD@/root/{}", through=("root",)),
    Way("slurmd's working folder", "/proc/@SLURMD@/cwd/../../../../{}", through=("root",)),
    Way("slurmd's thread", "/proc/@SLURMD@/task/@SLURMD@/root/{}", through=("root",)),
    Way("the first process", "/proc/1/root/{}", through=()),
    Way("slurmd's descriptor", "/proc/@SLURMD@/fd/@NUMBER@/../../../../{}", through=()),
    Way("own descriptor", "/proc/self/fd/@NUMBER@/../../../../{}", through=()),
    Way("/dev/fd", "/dev/fd/@NUMBER@/../../../../{}", through=()),
)

#: Files of /proc that tell what a user must not know, who reads them where there is no jail, and what shows that they were read. What is
#: opened as standard input stays readable for the task, at any offset.
TOLD = (
    ("slurmd's environment", "/proc/@SLURMD@/environ", ("root",), "PATH="),
    ("slurmd's maps", "/proc/@SLURMD@/maps", ("root",), "sbin/slurmd"),
    ("slurmd's memory", "/proc/@SLURMD@/mem", ("root",), "OPENED"),
    ("own memory", "/proc/self/mem", ("root",), "OPENED"),
    ("own thread's memory", "/proc/thread-self/mem", ("root",), "OPENED"),
)
#: What a task prints of its standard input.
READ = "timeout 2 cat 2>&1 | head -c 5000; readlink /proc/self/fd/0 | grep -q mem$ && echo OPENED"


@dataclass(frozen=True)
class Attempt:
    """One attempt: a script of sh, and the sign of its success in its folder, on its outputs or outside."""

    name: str
    script: str
    shows: str = WORD
    through: bool = True  # where there is no jail
    is_outside: bool = False  # whether the sign is a file outside


def paths(rest: str, user: str, slurmd: int) -> list[tuple[str, str, bool]]:
    """Return for each way and user its name, the path, and whether it works without a jail."""
    found = []
    for way in WAYS:
        path = way.path.format(rest).replace("@SLURMD@", str(slurmd))
        numbers = DESCRIPTORS if "@NUMBER@" in path else range(1)
        for number in numbers:
            name = way.name if len(numbers) == 1 else f"{way.name} {number}"
            found.append((name, path.replace("@NUMBER@", str(number)), user in way.through))
    return found


def by_thread(thread: int) -> Attempt:
    """Return a batch job that reads through another thread of its slurmstepd, if that thread has this number."""
    path = f"/proc/self/task/{thread}/root/{SECRET}"
    return Attempt("another thread's root", f"sbatch -Q --no-requeue -o out -t 1 --input={path} --wrap {quote(READ)}")


def batch(
    name: str, options: str, script: str, through: bool, shows: str = WORD, *, is_outside: bool = False
) -> Attempt:
    """Return the submission of a batch job, without a wait for its end."""
    command = f"sbatch -Q --no-requeue -o out -t 1 {options} --wrap {quote(script)}"
    return Attempt(f"sbatch {name}", command, shows, through, is_outside)


def step(
    name: str, options: str, command: str, through: bool, shows: str = WORD, *, is_outside: bool = False
) -> Attempt:
    """Return a step with its own allocation."""
    return Attempt(f"srun {name}", f"timeout 10 srun -Q -t 1 {options} {command}", shows, through, is_outside)


def reading(user: str, slurmd: int) -> list[Attempt]:
    """Return attempts to make slurmstepd read a file outside, as standard input or through the working folder.

    srun opens a file itself unless its name has a pattern.
    """
    found = []
    for name, path, through in paths(SECRET, user, slurmd):
        found.append(batch(f"--input {name}", f"--input={path}", READ, through))
    for name, path, _ in paths(SECRET, user, slurmd):
        if not any(
            char.isdigit() for char in name
        ):  # the batch job is its control: without a jail such a step waits for ever
            found.append(step(f"--input {name}", f"--input={path}%t", f"sh -c {quote(READ)}", through=False))
    for name, path, through in paths(OUTSIDE, user, slurmd):
        if not any(char.isdigit() for char in name):
            found.append(step(f"--chdir {name}", f"--chdir={path}", f"sh -c {quote('cat secret')}", through))
    for name, path, users, shows in TOLD:
        found.append(
            batch(f"--input {name}", f"--input={path.replace('@SLURMD@', str(slurmd))}", READ, user in users, shows)
        )
    return found


def writing(user: str, slurmd: int) -> list[Attempt]:
    """Return attempts to make slurmstepd or slurmd write outside: each creates a file with its own name in DROP."""
    found = []
    for number, (name, path, through) in enumerate(paths(DROP, user, slurmd)):
        marks = {kind: f"{user}-{kind}{number}-" for kind in "oesbc"}

        def add(make: Callable[..., Attempt], option: str, kind: str, options: str, command: str) -> None:
            sign = marks[kind]  # noqa: B023 -- called at once
            found.append(make(f"{option} {name}", options, command, through, sign, is_outside=True))  # noqa: B023

        add(batch, "--output", "o", f"--output={path}/{marks['o']}%j", "echo x")
        if any(char.isdigit() for char in name):
            continue
        add(batch, "--error", "e", f"--open-mode=append --error={path}/{marks['e']}%j", "echo x >&2")
        add(step, "--output", "s", f"--output={path}/{marks['s']}%t", "echo x")
        add(step, "--bcast", "c", f"--bcast={path}/{marks['c']}", OWN)
        cast = f"salloc -Q -t 1 sbcast -f {OWN} {path}/{marks['b']}"
        found.append(Attempt(f"sbcast {name}", cast, marks["b"], through, is_outside=True))
    return found


def texts(user: str, slurmd: int, options: dict[str, tuple[bool, list[str]]]) -> list[Attempt]:
    """Return the attempts for each option that takes a value: paths, lines, formats and commands.

    A program of the attacker reports where it runs.
    """
    found = []
    for name in sorted(name for name, (takes, _) in options.items() if takes):
        for command in {"sbatch", "srun"} & set(options[name][1]):
            for number, text in enumerate(TEXTS if USES.get(name) != "number" else TEXTS[:1]):
                value = quote(f"--{name}={text.replace('@SLURMD@', str(slurmd))}")
                shape = (
                    f"sbatch -Q -o out -t 1 {value} {OWN}" if command == "sbatch" else f"srun -Q -I3 -t 1 {value} {OWN}"
                )
                found.append(Attempt(f"{command} --{name} {number}", shape, through=False))
    for name in ("prolog", "epilog", "task-prolog", "task-epilog"):
        found.append(step(f"--{name}", f"--{name}=$HOME/own", "true", through=True, shows=f"as {user}"))
    return found


#: For each option that takes a value what slurmd, slurmstepd or the command itself does with it. A new release's option that is missing here
#: fails the test: somebody has to say what can be done with it.
#: opens, folder, program, table: attacked with every way. text: with words that break quoting, formats and lines. number: no more than a number.
USES: dict[str, str] = {
    "input": "opens", "output": "opens", "error": "opens",
    "chdir": "folder",
    "bcast": "bcast", "bcast-exclude": "text", "send-libs": "number",
    "task-prolog": "program", "task-epilog": "program", "prolog": "program", "epilog": "program", "get-user-env": "program",
    "mpi": "plugin", "compress": "plugin", "profile": "plugin", "context": "plugin", "container": "file", "container-id": "text",
    "bbf": "file", "bb": "text", "export-file": "file", "nodefile": "file", "wrap": "text", "export": "text", "propagate": "text",
    "open-mode": "text", "x11": "text", "network": "text", "batch": "text", "extra": "text", "comment": "text", "job-name": "text",
    "account": "text", "wckey": "text", "partition": "text", "qos": "text", "reservation": "text", "licenses": "text", "mail-user": "text",
    "mail-type": "text", "mcs-label": "text", "constraint": "text", "prefer": "text", "cluster-constraint": "text", "clusters": "text",
    "cluster": "text", "dependency": "text", "nodelist": "text", "exclude": "text", "gres": "text", "gres-flags": "text", "hint": "text",
    "distribution": "text", "signal": "text", "switches": "text", "array": "text", "begin": "text", "deadline": "text", "tres-bind": "text",
    "tres-per-task": "text", "gpu-bind": "text", "gpu-freq": "text", "gpus": "text", "gpus-per-node": "text", "gpus-per-socket": "text",
    "gpus-per-task": "text", "cpu-bind": "text", "cpu_bind": "text", "mem-bind": "text", "accel-bind": "text", "acctg-freq": "text",
    "cpu-freq": "text", "kill-command": "text", "autocomplete": "text", "external-launcher": "text", "het-group": "text", "pack-group": "text",
    "jobid": "number", "uid": "text", "gid": "text", "pty": "text", "exclusive": "text", "kill-on-invalid-dep": "text",
    "core-spec": "number", "cores-per-socket": "number", "cpus-per-gpu": "number", "cpus-per-task": "number", "delay-boot": "number",
    "extra-node-info": "number", "immediate": "number", "kill-on-bad-exit": "number", "mem": "number", "mem-per-cpu": "number",
    "mem-per-gpu": "number", "mincpus": "number", "msg-timeout": "number", "nice": "number", "no-kill": "number", "nodes": "number",
    "ntasks": "number", "ntasks-per-core": "number", "ntasks-per-gpu": "number", "ntasks-per-node": "number", "ntasks-per-socket": "number",
    "ntasks-per-tres": "number", "oom-kill-step": "number", "overlap": "number", "priority": "number", "relative": "number",
    "resv-ports": "number", "segment": "number", "slurmd-debug": "number", "sockets-per-node": "number", "tasks-per-node": "number",
    "thread-spec": "number", "threads": "number", "threads-per-core": "number", "time": "number", "time-min": "number", "tmp": "number",
    "treewidth": "number", "wait": "number", "wait-all-nodes": "number",
}  # fmt: skip

#: What an option that takes words is given.
TEXTS = (
    f"/proc/@SLURMD@/root/{SECRET}",
    f"../../../../../../{SECRET}",
    "x\n/opt/own.so\nPlugStackConfig=/home/alice/own.conf",
    "%n%s%1000000x$(/home/alice/own)`/home/alice/own`;/home/alice/own|/home/alice/own",
)
