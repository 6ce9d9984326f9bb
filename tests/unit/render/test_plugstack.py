"""plugstack.conf: which plugins every Slurm command and slurmstepd load, and in which order."""

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.slurm_conf.slurm_conf import plugstack_conf

CONTAINER = "required /opt/soperator/lib/slurm/spank_container.so"
JAIL = "required /opt/soperator/lib/slurm/spank_jail.so plan=/etc/soperator/jail/plan"


def lines(**spec: object) -> list[str]:
    """The lines of the file for a spec."""
    return plugstack_conf(SlurmClusterSpec.model_validate(spec)).splitlines()


def test_the_container_plugin_stands_before_the_jails() -> None:
    """A container is saved in the hook in which the jail's plugin ends what is left of a step."""
    assert lines() == [CONTAINER, JAIL]


def test_what_users_leave_open_is_the_clusters_to_say() -> None:
    """Each field of spec.jobContainers is an argument of the plugin, and the defaults are none."""
    said = {"scope": "Global", "entrypoint": True, "remapRoot": True, "mountHome": True}
    words = "container_scope=global execute_entrypoint=1 remap_root=1 mount_home=1"
    assert lines(jobContainers=said) == [f"{CONTAINER} {words}", JAIL]


def test_a_site_may_bring_pyxis_instead() -> None:
    """Without our plugin for containers the site's own lines follow the jail's, so that its tasks are inside already."""
    pyxis = "required /usr/local/lib/slurm/spank_pyxis.so"
    assert lines(jobContainers={"enabled": False}, config={"extraLines": {"plugstack": pyxis}}) == [JAIL, pyxis]
