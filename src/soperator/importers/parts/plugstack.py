"""plugstack.conf: plugins of a site beside those of the operator. Source: spank(7)."""

from collections.abc import Iterator

from soperator.importers.parts.report import ImportReport


def plugin_lines(text: str, place: str, report: ImportReport) -> str:
    """Return the lines that may be extra lines of plugstack.conf, and report all of them."""
    return "".join(f"{line}\n" for line in _plugins(place, text, report))


def _plugins(place: str, text: str, report: ImportReport) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        here, shown = f"{place}, line {number}", " ".join(words)[:120]
        if not words:
            continue
        if any("pyxis" in each for each in words):
            report.ours(here, shown, "spec.jobContainers has the options of Pyxis")
        elif (
            words[0] in ("required", "optional")
            and len(words) > 1
            and words[1].startswith("/")
            and "/spank_jail.so" not in shown
        ):
            report.check(
                here,
                shown,
                "now spec.config.extraLines.plugstack: the file must be in slurmd's image and in the jail, at this path",
            )
            yield " ".join(words)
        else:
            report.left(
                here,
                shown,
                "write required or optional and the absolute path of the plugin into spec.config.extraLines.plugstack",
            )
