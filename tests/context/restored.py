"""What an engine would hold that starts now, against what the one that runs does hold."""

from __future__ import annotations

from typing import Any

from context.driver import Host
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.chat import Branch


def check_restored(host: Host) -> None:
    """Taken from the call records alone, a session is the one that has lived through the calls."""
    info, lived = host.state.info, host.state.chat
    state = lived.replay(lived.branch.call)
    items = lived.branch.plan.items
    restored = Branch.restore(state, items, lived.branch.call, lived.store)
    for name, value in _kept(lived.branch).items():
        assert value == _kept(restored)[name], name
    if not info.ancestors:
        read = CallLog.load(lived.store.query("call", {"session": info.id}))
        assert looked_up(lived.log) == looked_up(read)


def looked_up(log: CallLog) -> dict[str, Any]:
    """What is looked up of all calls, without reading a record."""
    names = ("by_tip", "known", "unsent", "rewritten", "host_calls", "models", "newest")
    return {name: getattr(log, name) for name in names}


def _kept(branch: Branch) -> dict[str, Any]:
    """All that decides on the bytes of later calls."""
    plan, sets = branch.plan, branch.sets
    return {
        "ops": plan.ops,
        "chars": plan.chars,
        "kept": branch.kept,
        "referred_at": plan.referred_at,
        "candidates": branch.candidates,
        "holders": plan.holders,
        "texts": plan.texts,
        "sets": (set(sets.pool), set(sets.active), set(sets.pins)),
        "says": {index: ours for index, ours in plan.says.items() if ours},
        "policy": dict(branch.policy_state),
        "ledger": branch.ledger,
        "stands": (branch.depth, branch.call, branch.matched),
        "lost": branch.lost,
        "rewritten": branch.rewritten,
        "cache": branch.cache_entries,
    }
