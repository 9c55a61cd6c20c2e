"""What the user is told after a call: their files, what was folded, rules without room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations

from foredeck.context.head import said_by
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ForedeckError
from foredeck.memory.entry import MemoryEntry
from foredeck.memory.sections import OF_USER, EntriesSection, line_of
from foredeck.memory.words import NEAR, content_words, likeness
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, CallStats, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.figures import short_count

PAIRS = 3
"""Pairs of similar rules named to the user."""


def advise_user(opened: OpenedSession, before: CallRecord | None) -> None:
    """Tells the user, after a call, about their files and rules."""
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
    if before is None:
        advise_on_rules(opened)


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


def advise_on_rules(opened: OpenedSession) -> None:
    """Tells the user once which rules have no room in the head."""
    sections = {section.name: section for section in opened.facilities.sections}
    section, head = sections.get(OF_USER), opened.session.chat.branch.plan.head
    memory, switches = opened.facilities.memory, opened.switches
    if head is None or memory is None or switches is None:
        return
    if not isinstance(section, EntriesSection):  # memory stays out of prompts
        return
    # For a session's first call, which this must not fail.
    with suppress(ForedeckError):
        lines = said_by(head.blocks[0]["text"], OF_USER).splitlines()
        rules = section.rules()
        left_out = sum(line_of(rule) not in lines for rule in rules)
        if switches.begins("crowded", holds=left_out > 0):
            text = crowded_rules(rules, left_out, memory.memory.name)
            opened.session.inbox.user_messages.append(text)


def crowded_rules(
    rules: Sequence[MemoryEntry], left_out: int, name_of: Callable[[str], str]
) -> str:
    """The message about rules without room."""
    return (
        f"{left_out} of your {len(rules)} rules do not fit before the chat: the model has to "
        f"search for them. {_merging(rules, name_of)} `head.tokens` makes room for more."
    )


def _merging(rules: Sequence[MemoryEntry], name_of: Callable[[str], str]) -> str:
    pairs = [" and ".join(map(name_of, pair)) for pair in _alike(rules)]
    if pairs:
        return f"Merge what is alike: {'; '.join(pairs)} (/memory edit, /memory delete)."
    longest = sorted(rules, key=lambda rule: (-len(rule.document.fact), rule.id))[:PAIRS]
    names = ", ".join(name_of(rule.id) for rule in longest)
    return f"Shorten the longest: {names} (/memory edit)."


def _alike(rules: Sequence[MemoryEntry]) -> Iterator[tuple[str, str]]:
    words = {rule.id: content_words(rule.document.fact) for rule in rules}
    ranked = sorted(
        ((likeness(words[a], words[b]), a, b) for a, b in combinations(words, 2)),
        key=lambda pair: (-pair[0], *pair[1:]),
    )
    used: set[str] = set()
    for much, one, other in ranked:
        if much < NEAR or len(used) >= 2 * PAIRS:
            return
        if used.isdisjoint((one, other)):
            used |= {one, other}
            yield one, other
