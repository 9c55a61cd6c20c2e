"""Rules of the user's that do not fit before the chat: a word to them on it, and what to merge."""

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

PAIRS = 3
"""That are named, the likest."""


def tell_of_rules(opened: OpenedSession) -> None:
    """Once in a project, until they fit again. For a session's first call, which it never fails."""
    sections = {section.name: section for section in opened.features.sections}
    section, head = sections.get(OF_USER), opened.session.chat.branch.plan.head
    memory, switches = opened.features.memory, opened.switches
    if head is None or memory is None or switches is None:
        return
    if not isinstance(section, EntriesSection):  # memory stays out of prompts
        return
    with suppress(ForedeckError):
        said = said_by(head.blocks[0]["text"], OF_USER).splitlines()
        rules = section.rules()
        left_out = sum(line_of(rule) not in said for rule in rules)
        if switches.begins("crowded", holds=left_out > 0):
            text = crowded_rules(rules, left_out, memory.memory.name)
            opened.session.inbox.user_messages.append(text)


def crowded_rules(
    rules: Sequence[MemoryEntry], left_out: int, name_of: Callable[[str], str]
) -> str:
    """What the user reads. `name_of`: what an entry is called, by its id."""
    return (
        f"{left_out} of your {len(rules)} rules do not fit before the chat: the model has to "
        f"search for them. {_merging(rules, name_of)} `head.tokens` makes room for more."
    )


def _merging(rules: Sequence[MemoryEntry], name_of: Callable[[str], str]) -> str:
    pairs = [" and ".join(map(name_of, pair)) for pair in _alike(rules)]
    if pairs:
        return f"Merge what is alike: {'; '.join(pairs)} (/memory edit, /memory delete)."
    longest = sorted(rules, key=lambda rule: (-len(rule.document.fact), rule.id))[:PAIRS]
    named = ", ".join(name_of(rule.id) for rule in longest)
    return f"Shorten the longest: {named} (/memory edit)."


def _alike(rules: Sequence[MemoryEntry]) -> Iterator[tuple[str, str]]:
    """The likest pairs, each entry in one of them."""
    words = {rule.id: content_words(rule.document.fact) for rule in rules}
    ranked = sorted(
        ((likeness(words[a], words[b]), a, b) for a, b in combinations(words, 2)),
        key=lambda pair: (-pair[0], *pair[1:]),
    )
    named: set[str] = set()
    for much, one, other in ranked:
        if much < NEAR or len(named) >= 2 * PAIRS:
            return
        if named.isdisjoint((one, other)):
            named |= {one, other}
            yield one, other
