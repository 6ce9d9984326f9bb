"""Conditions of the importers (src/soperator/importers), without which a setting or a password goes where it must not."""

from tests.mutants.mutant import Mutant

D, T = "src/soperator/importers", "tests/unit/importers/test_slurm_conf.py"

IMPORTERS = [
    Mutant(
        f"{D}/slurm_conf/partitions.py",
        "if not reason and nodes is not None and not nodes:",
        "if False:",
        "the limits of a partition without nodes, which then has all of them",
        (T,),
    ),
    Mutant(
        f"{D}/slurm_conf/nodes.py",
        "groups.setdefault((shape, tuple(sorted(membership.get(name, ())))), []).append(name)",
        "groups.setdefault((shape, ()), []).append(name)",
        "nodes of one partition to the users of another",
        (T,),
    ),
    Mutant(
        f"{D}/parts/free_settings.py",
        'return f"{key}=(hidden)" if _SECRET.search(key) else',
        "return",
        "a password, which a report has",
        (T,),
    ),
    Mutant(
        f"{D}/slurm_conf/settings.py",
        "        if each.line.rest:\n            report.left(each.place, each.line.rest[:120]",
        "        if False:\n            report.left(each.place, each.line.rest[:120]",
        "a line that Slurm cannot read, of which nobody hears",
        (T,),
    ),
]
