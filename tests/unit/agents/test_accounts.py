"""People stay when the root file system under them is replaced."""

from soperator.agents.merge_passwd import merged

OLD = {
    "passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/bash\nmysql:x:110:110::/:/bin/false\n",
    "group": "root:x:0:\nsudo:x:27:alice,mysql\nalice:x:1000:\ngpu:x:1500:alice\nmysql:x:110:\n",
    "shadow": "root:*:1::::::\nalice:!:1::::::\nmysql:!:1::::::\n",
    "gshadow": "sudo:*::alice\nalice:!::\ngpu:!::alice\n",
    "subuid": "alice:100000:65536\n",
}
NEW = {
    "passwd": "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nsudo:x:27:ubuntu\nubuntu:x:1000:\nrender:x:105:\n",
    "shadow": "root:*:2::::::\nubuntu:!:2::::::\n",
}


def test_people_and_their_groups_are_kept_and_packages_accounts_are_the_new_images():
    """Alice, her group and her password line stay; root is the new image's; a package's old account is gone."""
    files = merged(OLD, NEW)
    assert files["passwd"].splitlines() == [
        "root:x:0:0::/root:/bin/bash",
        "nobody:x:65534:65534::/:/bin/false",
        "alice:x:1000:1000::/home/alice:/bin/bash",
    ]
    assert files["shadow"].splitlines() == ["root:*:2::::::", "alice:!:1::::::"]
    assert "gpu:x:1500:alice" in files["group"].splitlines()
    assert files["subuid"] == OLD["subuid"]
    assert "mysql" not in "".join(files.values())


def test_a_person_stays_in_the_groups_of_the_system():
    """Who was in sudo is in the new image's sudo."""
    assert "sudo:x:27:ubuntu,alice" in merged(OLD, NEW)["group"].splitlines()


def test_merging_twice_changes_nothing():
    """A Job that is killed after it and runs again finds it done."""
    once = merged(OLD, NEW)
    assert merged(OLD, once) == once


def test_torn_lines_and_missing_files_are_no_reason_to_stop():
    """What is no account is left as it is in the new file and left out of the old one."""
    assert merged({"passwd": "alice\n:::\nbob:x:no:1\n"}, {"passwd": "root:x:0:0::/:/bin/sh"}) == {
        "passwd": "root:x:0:0::/:/bin/sh\n"
    }
