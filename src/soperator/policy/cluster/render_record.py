"""Decides which rendered objects a newer operator leaves unchanged.

A newer version may render the same spec to another pod template, and a changed template means a restart. So each pass records the version of its
renderer and a hash of its inputs. If the renderer has changed and the inputs have not, the former result stays in force until the inputs change,
because then a person has requested a change. A request for an upgrade ends this at once.

The record is written after a pass has acted. So an old or missing record delays nothing: the new operator applies a change that the former one did
not apply.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_MOST = 8


@dataclass(frozen=True)
class RenderRecord:
    """The record of the last pass: its renderer and inputs, the last request for an upgrade, and for each object the rendered digest and the
    digests that count as equal.
    """

    renderer: str
    inputs: str
    request: str = ""
    wanted: Mapping[str, str] = field(default_factory=dict)
    same: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def adopt(former: RenderRecord | None, now: RenderRecord, may: bool, may_begin: bool = True) -> RenderRecord:
    """Return the record of this pass, with the result that is in force.

    `may` says whether an upgrade must be requested, `may_begin` whether the result of another renderer may stay in force.
    """
    if former is None or not may or former.request != now.request:
        return now
    if former.renderer == now.renderer:
        kept = {each: former.same[each] for each in former.same if former.wanted.get(each) == now.wanted.get(each)}
    elif former.inputs == now.inputs and may_begin:
        kept = {
            each: tuple(
                dict.fromkeys(
                    digest for digest in (*former.same.get(each, ()), wanted) if digest != now.wanted.get(each)
                )
            )
            for each, wanted in former.wanted.items()
        }
    else:
        return now
    same = {each: digests[-_MOST:] for each, digests in kept.items() if digests and each in now.wanted}
    return RenderRecord(now.renderer, now.inputs, now.request, now.wanted, same)
