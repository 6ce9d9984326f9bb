"""Accounting: the settings of slurm.conf for it, and slurmdbd.conf. Passwords are never written: a Secret holds them. Source: slurmdbd.conf(5)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from soperator.importers.parts.report import KEEP, ImportReport
from soperator.importers.parts.slurmdbd import PURGES, purge_age, slurmdbd_line
from soperator.importers.slurm_conf.files import SourceLine
from soperator.slurm import conf

_STORAGE = {"storagehost": "host", "storageport": "port", "storageuser": "user", "storageloc": "database"}
_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")


def accounting_spec(cluster: str, lines: Sequence[SourceLine], report: ImportReport) -> tuple[dict[str, Any], str]:
    """Return spec.accounting and the extra lines of slurmdbd.conf, and report every setting of that file."""
    said = {key.lower(): value for each in lines for key, value in each.line.pairs}
    extra: list[conf.Line] = []
    purge: dict[str, str] = {}
    for each in lines:
        for key, value, text in each.settings():
            name = key.lower()
            if name in PURGES:
                _add_purge(purge, PURGES[name], value, (each.place, text), report)
            elif name not in _STORAGE and name != "storagepass":
                extra += slurmdbd_line(key, value, (each.place, text), report)
        if each.line.rest or each.line.include:
            report.left(
                each.place, (each.line.rest or f"Include {each.line.include}")[:120], "slurmdbd.conf has Key=Value only"
            )
    spec = {KEEP: True, "purge": purge, "externalDatabase": _external(cluster, said, lines, report)}
    return spec, conf.render(extra)


def _add_purge(purge: dict[str, str], field: str, value: str, source: tuple[str, str], report: ImportReport) -> None:
    if age := purge_age(value):
        purge[field] = age
        report.carried(*source, f"spec.accounting.purge.{field}")
    else:
        report.left(*source, "write hours, days or months into spec.accounting.purge, such as 12months")


def _external(
    cluster: str, said: Mapping[str, str], lines: Sequence[SourceLine], report: ImportReport
) -> dict[str, Any]:
    """Return spec.accounting.externalDatabase, and report its settings; empty if the operator's own database is to be used."""
    host = said.get("storagehost", "")
    host = said.get("dbdhost", "") if host.lower() in _LOCAL else host
    port = said.get("storageport", "3306")
    names = [said.get("storageuser", "slurm"), said.get("storageloc", "slurm_acct_db")]
    is_whole = host.lower() not in _LOCAL and _HOST.fullmatch(host) and all(_NAME.fullmatch(each) for each in names)
    is_whole = is_whole and port.isdecimal() and 0 < int(port) < 65536
    secret = f"{cluster}-external-database"
    for each in lines:
        for key, _, text in each.settings():
            name = key.lower()
            if name not in _STORAGE and name != "storagepass":
                continue
            if not is_whole:
                report.left(
                    each.place,
                    text,
                    "the address, user or name of the database cannot be used from a pod: set spec.accounting.externalDatabase",
                )
            elif name == "storagepass":
                report.check(each.place, text, f"create the Secret {secret} with the key password")
            elif name == "storagehost" and host != said[name]:
                report.check(
                    each.place, text, f"now {host} of DbdHost: let the database listen there, and admit the pods"
                )
            else:
                report.carried(each.place, text, f"spec.accounting.externalDatabase.{_STORAGE[name]}")
    if not lines or not is_whole:
        reason = "the operator makes a database of its own, which is empty: set externalDatabase to keep the history"
        report.check(f"SlurmCluster {cluster}", "spec.accounting", reason)
        return {}
    return {"host": host, "port": int(port), "user": names[0], "database": names[1], "password": {"secretName": secret}}
