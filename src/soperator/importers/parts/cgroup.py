"""cgroup.conf: most of it follows from `spec.jobs.limits`. Source: cgroup.conf(5)."""

from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.report import ImportReport
from soperator.slurm import conf

#: Settings of cgroup.conf that follow from spec.jobs.limits.
_CGROUP = frozenset(
    {
        *("cgroupplugin", "cgroupautomount", "cgroupmountpoint", "ignoresystemd", "ignoresystemdonfailure"),
        *("enablecontrollers", "constraincores", "constrainramspace", "constraindevices", "systemdtimeout"),
        *("taskaffinity", "cgroupreleaseagentdir", "allowedkmemspace", "constrainkmemspace"),
    }
)


def cgroup_lines(text: str, place: str, report: ImportReport) -> str:
    """Return the extra lines of cgroup.conf, and report each setting of the text."""
    extra: list[conf.Line] = []
    for line in conf.logical_lines(text):
        here = f"{place}, line {line.number}"
        for key, value in line.pairs:
            said = shown(key, value)
            if key.lower() in _CGROUP:
                report.ours(here, said, "it follows from spec.jobs.limits")
            elif '"' in value or "\n" in value:
                reason = "its value contains a quotation mark or a line break, which a line cannot have"
                report.left(here, said, reason)
            else:
                extra.append(conf.Line(((key, value),)))
                report.carried(here, said, "spec.config.extraLines.cgroup")
        if line.rest or line.include:
            report.left(here, (line.rest or f"Include {line.include}")[:120], "cgroup.conf has Key=Value only")
    return conf.render(extra)
