"""A word on the newest message where older ones have just made way: go on as before."""

from __future__ import annotations

from foredeck.context.calls.call import CallInProgress
from foredeck.context.rewriting.stand_in_lines import continuation
from foredeck.context.state.stand_ins import StandIn


def attach_continuation(call: CallInProgress) -> None:
    """Put it on the newest message, which must be new in this call.

    Once: at the call at which texts have taken the place of chat, or the window's or the host's
    summary has. Only where observations are switched on.
    """
    context = call.context
    if call.features.stand_ins is None or not _made_way(call):
        return
    index = len(context.plan) - 1
    if not context.takes_lines(index):
        return
    if context.plan.ops[index].form == "note":
        # An answer of our own tools: where a call goes out without us, it counts as it stands here.
        return
    newest = _newest(call)
    task, suggestion = ("", "") if newest is None else (newest.task, newest.suggestion)
    context.attach(index, continuation(task, suggestion))


def _made_way(call: CallInProgress) -> bool:
    """Whether something has replaced messages at this call."""
    summed_up = call.alignment.replaced and call.items[0].kind == "context"
    return bool(call.decision.stand_ins or call.decision.compaction or summed_up)


def _newest(call: CallInProgress) -> StandIn | None:
    """The observation or reflection that covers the newest messages."""
    stretches = call.session.chat.branch.plan.observed
    known = call.features.stand_ins.known() if call.features.stand_ins else ()
    standing = [each for each in known if each.id in stretches]
    return max(standing, key=lambda each: stretches[each.id][1], default=None)
