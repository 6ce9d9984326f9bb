"""What a newer operator leaves as it finds it.

The same spec may be another pod template in a newer version, and a changed template is a restart. So each pass notes by which renderer, and from
which inputs, it wanted what it wanted. When the renderer has changed and the inputs have not, what the former one wanted counts as what this one
wants, until the inputs make it want something else: then somebody has asked for a change. A request for an upgrade ends it at once.

The note is written after a pass has acted. So an old one, or none, adopts nothing: a change that the former operator did not come to is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_MOST = 8


@dataclass(frozen=True)
class RenderRecord:
    """Of the last pass: its renderer and inputs, the last request for an upgrade; by object the digest that it wanted and those that counted."""

    renderer: str
    inputs: str
    request: str = ""
    wanted: Mapping[str, str] = field(default_factory=dict)
    same: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def adopt(former: RenderRecord | None, now: RenderRecord, may: bool, may_begin: bool = True) -> RenderRecord:
    """The note of this pass, which knows what it wants, with what counts as well.

    `may` is whether an upgrade has to be asked for, `may_begin` whether another renderer's wishes may be taken for this one's.
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
