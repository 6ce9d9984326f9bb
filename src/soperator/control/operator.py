"""What every pass is given: the API, the caches, the tools that write, and the operator's defaults."""

from dataclasses import dataclass

from soperator.control.slurm import SlurmWatch
from soperator.control.stores import Stores
from soperator.kube.api import Api
from soperator.render.model import Defaults
from soperator.runtime.apply import Applier
from soperator.runtime.events import Recorder
from soperator.runtime.status import StatusWriter
from soperator.runtime.store import Key


@dataclass(frozen=True)
class Operator:
    """The parts that passes share."""

    api: Api
    stores: Stores
    applier: Applier
    status: StatusWriter
    recorder: Recorder
    slurm: SlurmWatch
    defaults: Defaults

    def forget_cluster(self, key: Key) -> None:
        """Drop what is held of a cluster that is gone."""
        self.slurm.forget(key)
