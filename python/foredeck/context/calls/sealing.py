"""Which sealed reasoning keeps what precedes it at one call.

A rule takes over when a turn begins: one that was begun with every byte before its reasoning
standing goes on so, whatever is configured meanwhile.
"""

from __future__ import annotations

from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.seals import SealRule, binds_by_table
from foredeck.context.state.request import Model
from foredeck.context.state.session import Session


def seal_rule(
    session: Session, alignment: Alignment, model: Model | None, within: bool
) -> SealRule:
    """The rule for one call. `within`: whether it is wanted that a turn with sealed reasoning is
    rewritten where no provider is known to refuse that."""
    if not within or model is None or binds_by_table(model.api, model.name):
        return SealRule()
    record, new = session.branch_record, alignment.items[alignment.matched :]
    goes_on = record is not None and all(item.kind != "user" for item in new)
    return SealRule(free=record is None or not goes_on or record.free_seals)
