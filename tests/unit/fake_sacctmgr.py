"""sacctmgr and slurmdbd as far as the operator speaks with them, with what makes slurmdbd 24.11 dangerous: an account goes with all that is in it."""

from dataclasses import dataclass, field

from soperator.slurm import sacctmgr
from soperator.slurm.sacctmgr import ASSOCIATION, BETWEEN, QOS


class Refused(Exception):  # noqa: N818
    """What sacctmgr prints before it ends with 1."""


@dataclass
class Row:
    """An association."""

    account: str
    user: str = ""
    partition: str = ""
    number: int = 0
    parent: str = ""
    comment: str = ""
    fields: dict[str, str] = field(default_factory=dict)


_UNSET = {"Fairshare": "1", "PreemptMode": "cluster", "GraceTime": "00:00:00", "UsageFactor": "1.000000"}


@dataclass
class FakeSacctmgr:
    """A database that commands change, and that prints itself; `jobs` are (user, account)."""

    rows: list[Row] = field(default_factory=lambda: [Row("root", number=1), Row("root", "root", number=2)])
    accounts: dict[str, list[str]] = field(default_factory=lambda: {"root": ["root", "default root account"]})
    qos: dict[str, dict[str, str]] = field(default_factory=lambda: {"normal": {"Description": "Normal QOS default"}})
    defaults: dict[str, str] = field(default_factory=lambda: {"root": "root"})
    jobs: dict[int, tuple[str, str]] = field(default_factory=dict)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    number: int = 2

    def find(self, account, user="", partition=""):
        """One association, or None."""
        return next(
            (each for each in self.rows if (each.account, each.user, each.partition) == (account, user, partition)),
            None,
        )

    def run(self, *words):
        """Do as a command says; raises Refused."""
        self.ran.append(words)
        verb, what, *rest = words
        cut = rest.index("set") if "set" in rest else len(rest)
        where = dict(each.split("=", 1) for each in rest[:cut] if each != "where")
        setting = dict(each.split("=", 1) for each in rest[cut + 1 :])
        getattr(self, f"_{verb}_{what}")(where, setting)

    def _add_account(self, said, _):
        name = said.pop("name")
        said.pop("cluster")
        parent = said.pop("parent")
        if self.find(name) or not self.find(parent):
            raise Refused("Nothing added")
        self.accounts.setdefault(name, [said.pop("Organization", name), said.pop("Description", name).lower()])
        self._add(
            Row(name, parent=parent, comment=said.pop("comment", "")),
            {key: each for key, each in said.items() if key in ASSOCIATION},
        )

    def _add_user(self, said, _):
        users, account = said.pop("name").split(","), said.pop("account")
        said.pop("cluster")
        comment, partition = said.pop("comment", ""), said.pop("partition", "")
        if not self.find(account) or all(self.find(account, each, partition) for each in users):
            raise Refused("Nothing added")
        for user in users:
            self._add(Row(account, user, partition, comment=comment), said)
            self.defaults.setdefault(user, account)

    def _add(self, row, said):
        self.number += 1
        row.number = self.number
        row.fields = {"Fairshare": "1"}
        self._set(row.fields, said, ASSOCIATION)
        self.rows.append(row)

    def _modify_account(self, where, said):
        row = self.find(where["name"])
        if row is None:
            raise Refused("Nothing modified")
        for place, name in enumerate(("Organization", "Description")):
            if name in said:
                self.accounts[row.account][place] = said.pop(name).lower()
        row.parent = said.pop("Parent", row.parent)
        self._set(row.fields, said, ASSOCIATION)

    def _modify_user(self, where, said):
        if "DefaultAccount" in said:
            if not self.find(said["DefaultAccount"], where["name"]):
                raise Refused("Can't modify because these users aren't associated with new default account")
            self.defaults[where["name"]] = said["DefaultAccount"]
            return
        for each in self._selected(where):
            self._set(each.fields, said, ASSOCIATION)

    def _selected(self, where):
        numbers = where["assoc"].split(",")
        found = [
            each
            for each in self.rows
            if each.user in where["name"].split(",")
            and each.account == where["account"]
            and str(each.number) in numbers
        ]
        if not found:
            raise Refused("Nothing modified")
        return found

    def _delete_user(self, where, _):
        for each in self._selected(where):
            others = [row for row in self.rows if row.user == each.user and row.account != each.account]
            if (each.user, each.account) in self.jobs.values():
                raise Refused("Job(s) active, cancel job(s) before remove")
            if self.defaults.get(each.user) == each.account and others:
                raise Refused("You can not remove the default account of a user")
            self.rows.remove(each)
            if not others:
                self.defaults.pop(each.user, None)

    def _delete_account(self, where, _):
        below = {where["name"]}
        while more := {each.account for each in self.rows if not each.user and each.parent in below} - below:
            below |= more
        if any(account in below for _, account in self.jobs.values()):
            raise Refused("Job(s) active, cancel job(s) before remove")
        self.rows = [each for each in self.rows if each.account not in below]

    def _add_qos(self, said, _):
        name = said.pop("name")
        if name in self.qos:
            raise Refused("Nothing added")
        self.qos[name] = {"Description": said.pop("Description", name)}
        self._set(self.qos[name], said, QOS)

    def _modify_qos(self, where, said):
        if "Description" in said:
            self.qos[where["name"]]["Description"] = said.pop("Description").lower()
        self._set(self.qos[where["name"]], said, QOS)

    def _delete_qos(self, where, _):
        if any(each.fields.get("DefaultQOS") == where["name"] for each in self.rows):
            raise Refused("Associations have it as their default")
        del self.qos[where["name"]]

    def _set(self, fields, said, sorts):
        for name, value in said.items():
            if sorts[name] == "tres":
                now = {**_tres(fields.get(name, "")), **_tres(value)}
                fields[name] = ",".join(f"{key}={count}" for key, count in sorted(now.items()) if count != "-1")
            elif value == "-1":
                fields[name] = "0" if name == "Priority" and sorts is QOS else ""
            elif sorts[name] == "time":
                whole = sacctmgr.minutes(value)
                fields[name] = f"{whole // 1440}-{whole % 1440 // 60:02}:{whole % 60:02}:00"
            elif sorts[name] == "seconds":
                fields[name] = f"{int(value) // 3600:02}:{int(value) % 3600 // 60:02}:{int(value) % 60:02}"
            else:
                fields[name] = value

    def show(self):
        """What sacctmgr prints to `QUESTIONS`."""
        associations = [
            "|".join(
                ["demo", row.account, row.user, row.partition, str(row.number), row.parent]
                + [row.fields.get(each, "") for each in ASSOCIATION]
                + [row.comment]
            )
            for row in self.rows
        ]
        accounts = ["|".join([name, *texts]) for name, texts in self.accounts.items()]
        qos = [
            "|".join([name, *(each.get(key) or _UNSET.get(key, "") for key in QOS), each["Description"]])
            for name, each in self.qos.items()
        ]
        users = [f"{user}|{account}" for user, account in self.defaults.items()]
        return f"{BETWEEN}\n".join(
            "".join(f"{line}\n" for line in part) for part in (associations, accounts, qos, users)
        )

    def read(self):
        """The database as the operator reads it."""
        return sacctmgr.read(self.show())

    def of(self, account):
        """The jobs of an account, as squeue has them."""
        found = {}
        for number, (user, name) in self.jobs.items():
            if name == account:
                found.setdefault(user, []).append(number)
        return found


def _tres(value):
    return dict(each.split("=", 1) for each in value.split(",") if each)
