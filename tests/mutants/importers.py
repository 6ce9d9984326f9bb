"""Conditions of the importers (src/soperator/importers), without which a setting or a password goes where it must not."""

from tests.mutants.mutant import Mutant

D, T = "src/soperator/importers", "tests/unit/importers/test_slurm_conf.py"
N = "tests/unit/importers/test_nebius.py"

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
        f"{D}/nebius/nodesets.py",
        "    fields.rest(reasons.NODESET)\n",
        "",
        "fields of a newer release, of which nobody hears",
        (N,),
    ),
    Mutant(
        f"{D}/parts/fields.py",
        "if any(path[: len(each)] == each for each in self.taken):",
        "if any(path[:2] == each[:2] for each in self.taken):",
        "a field beside one that was taken, of which nobody hears",
        (N,),
    ),
    Mutant(
        f"{D}/nebius/partitions.py",
        "    return whole if names and names == set().union(*(nodes[name] for name in whole)) else None",
        "    return whole",
        "nodes to a partition that had a part of them",
        (N,),
    ),
    Mutant(
        f"{D}/slurm_conf/settings.py",
        "        if each.line.rest:\n            report.left(each.place, each.line.rest[:120]",
        "        if False:\n            report.left(each.place, each.line.rest[:120]",
        "a line that Slurm cannot read, of which nobody hears",
        (T,),
    ),
]
