"""What the user is told after a call: their files, and what was folded."""

from __future__ import annotations

from foredeck.engine.opened import OpenedSession
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, CallStats, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.figures import short_count


def advise_user(opened: OpenedSession, before: CallRecord | None) -> None:
    """Tells the user, after a call, about their files and a large fold."""
    session, record = opened.session, opened.session.chat.branch_record
    parent = None if before is None else before.id
    # A chat that goes on from an earlier place has files from a later one.
    if opened.keeper is not None and record is not None and record.parent != parent:
        # Loads with the first chat that does.
        from foredeck.timeline.rewind_command import offer

        if (text := offer(session.objects.store, session.info, record)) is not None:
            session.inbox.user_messages.append(text)
    if record is not None and (text := large_fold(record.decision, record.stats)) is not None:
        session.inbox.user_messages.append(text)


LARGE_FOLD, LARGE_TOKENS = 1 / 3, 10_000
"""A rebase that takes out more than this share of a prompt, and as many tokens, is reported."""


def large_fold(decision: Decision, stats: CallStats) -> str | None:
    """What the user reads after a large fold, with the way back."""
    rate = stats.rate or CHARS_PER_TOKEN
    before, gone = stats.chars_sent + stats.shorter_by, stats.shorter_by / rate
    if not decision.is_rebase or stats.shorter_by <= LARGE_FOLD * before or gone < LARGE_TOKENS:
        return None
    why = REASONS.get(decision.reason or "", decision.reason)
    sizes = f"{short_count(gone)} of {short_count(before / rate)} tokens"
    return (
        f"foredeck has folded {sizes}, because {why}. The model brings back what it needs; "
        "/foredeck lists and opens what is folded, /foredeck off sends all of it again."
    )
