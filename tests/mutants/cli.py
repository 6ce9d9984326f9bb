"""Conditions of the command line that protect an administrator's word, or keep what is secret."""

from tests.mutants.mutant import Mutant

C, T = "src/soperator/cli", "tests/unit/cli"

CLI = [
    Mutant(
        f"{C}/cluster/drain.py",
        "if reason.lower().startswith(REASON_PREFIX.strip()):",
        "if False:",
        "an administrator's drain, which the operator takes for its own and lifts",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/cluster/drain.py",
        "if reason and each.is_out and each.reason:",
        "if False:",
        "the reason for which somebody else has drained a node",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/cluster/drain.py",
        "if not reason and each.reason.startswith(REASON_PREFIX):",
        "if False:",
        "jobs on a node that a check has drained",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/support/find_pods.py",
        "        if is_ready(pod):\n            return Target",
        "        if True:\n            return Target",
        "a drain, for which a pod is asked that is not ready",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/support/slurm_queries.py",
        "mark = secrets.token_hex(8)",
        'mark = "\\n"',
        "the list of jobs, in which a user's name of a job makes lines of its own",
        (f"{T}/test_queue.py",),
    ),
]
