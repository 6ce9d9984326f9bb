"""Reports which programs run, which do not, and the address of each Node."""

from local import components
from local.cluster import records_of, settings_of
from local.paths import State
from local.plan import node_plans
from local.process import is_alive, uptime


def show(state: State) -> bool:
    """Print a table of the expected programs; return whether all of them run."""
    settings = settings_of(state)
    if settings is None:
        print(f"no cluster runs in {state.root}")
        return False
    records = records_of(state)
    print(f"{'COMPONENT':<32} {'PID':>8}  {'UP':>8}")
    for process in records.all():
        shown = f"{uptime(process):7.0f}s" if is_alive(process) else "    DEAD"
        print(f"{process.name:<32} {process.pid:>8}  {shown}")
    known = {process.name for process in records.all()}
    stopped = [name for name in components.names(node_plans(settings.nodes)) if name not in known]
    for name in stopped:
        print(f"{name:<32} {'-':>8}   stopped")
    print(f"\n{'NODE':<10} {'ADDRESS':<14} PODS")
    for plan in node_plans(settings.nodes):
        print(f"{plan.name:<10} {plan.address!s:<14} {plan.pods}")
    components.check_alive(records)
    return not stopped
