"""What `activate`, `deactivate`, `pin` and `unpin` have decided, carried out on a branch.

A decision travels in the details of the tool's result, so that it is carried out again wherever
the result is in a message list: after a crash, on another branch, in a fork.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foredeck.context.messages.items import Item
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.state.sets import Sets


def apply_decision(sets: Sets, decision: Mapping[str, Any]) -> None:
    """Change the sets as a context tool has decided."""
    ordinal = decision["ordinal"]
    match decision.get("op"):
        case "list":
            sets.show(ordinal)
        case "activate":
            sets.activate(ordinal)
        case "deactivate":
            sets.deactivate(ordinal)
        case "pin":
            sets.pin(ordinal)
        case "unpin":
            sets.unpin(ordinal)


def recorded_decision(objects: Objects, item: Item) -> tuple[Entry, Mapping[str, Any]] | None:
    """The object and the decision in a context tool's result; None where it decided nothing.

    A decision about another object than the handle names now is not ours: it came from elsewhere.
    """
    decision = (item.details or {}).get("foredeck") if isinstance(item.details, dict) else None
    if item.failed or not isinstance(decision, dict):
        return None
    ordinal = decision.get("ordinal")
    entry = objects.index.entries.get(ordinal) if isinstance(ordinal, int) else None
    if entry is None or entry.object != decision.get("object"):
        return None
    return entry, decision
