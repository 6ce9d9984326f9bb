"""Which cluster a kubeconfig names, and what is said of one that names none."""

from pathlib import Path

import pytest
import yaml

from soperator.kube.kubeconfig import CONTEXT, NoCluster, configuration


def config(name: str, current: str = "", **cluster: str) -> str:
    """The text of a kubeconfig with one cluster, one user and one context of this name."""
    return yaml.safe_dump(
        {
            "current-context": current,
            "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **cluster}}],
            "users": [{"name": name, "user": {"token": name}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        }
    )


def test_the_first_of_several_files_wins_and_files_name_their_own_neighbours(tmp_path: Path) -> None:
    """KUBECONFIG is a list: files that do not exist are skipped, and relative paths are relative to the file that has them."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a").write_text(config("a", current="b", **{"certificate-authority": "ca.pem"}))
    (tmp_path / "b").write_text(config("b", current="a"))
    environment = {"KUBECONFIG": f"{tmp_path}/none:{tmp_path}/one/a:{tmp_path}/b"}
    found = configuration(environment)
    assert (found.cluster.server, found.namespace, found.user.token if found.user else "") == ("https://b", "of-b", "b")
    chosen = configuration(environment | {CONTEXT: "a"})
    assert (chosen.cluster.server, chosen.cluster.certificate_auth) == ("https://a", f"{tmp_path}/one/ca.pem")


@pytest.mark.parametrize(
    ("content", "environment", "words"),
    [
        (None, {}, "no such file; set KUBECONFIG, or give --kubeconfig FILE"),
        (config("a"), {}, "current-context is empty"),
        (config("a", current="z"), {}, "there is no context 'z'; the contexts are: a"),
        (config("a", current="a"), {CONTEXT: "y"}, "there is no context 'y'; the contexts are: a"),
        ("- 1", {}, "its top level is not a mapping"),
        ("a: [", {}, "cannot be read"),
        ("clusters: [{cluster: {}}]", {}, "no kubeconfig"),
        ("clusters: 7", {}, "no kubeconfig"),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_said_in_one_line(
    tmp_path: Path, content: str | None, environment: dict[str, str], words: str
) -> None:
    """The sentence names the file, what is wrong with it, and the remedy."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(NoCluster) as raised:
        configuration({"KUBECONFIG": str(path), **environment})
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
