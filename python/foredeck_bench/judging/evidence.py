"""What each recorded call needed to see: texts that it edited, names that it copied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from foredeck.accounting.shapes import Shape, blocks_of, is_sent, leaves, texts_of
from foredeck.context.messages.shape import Message
from foredeck.histories.records import Transcript
from foredeck.model.messages import texts_in
from foredeck.model.names import identifiers
from foredeck.model.quoting import is_reference, is_run
from foredeck.sources.tool_calls import edits_of

_CODE = re.compile(r"[A-Za-z]{3}")
_SHAPED = re.compile(r"[_/$]|[a-z][A-Z]|[A-Za-z]\.[A-Za-z]")


@dataclass(slots=True)
class Needs:
    """What one call needed. Each with the newest message that held it, where one did."""

    edits: list[tuple[str, int | None]] = field(default_factory=list)
    """Old texts of the edits that the recorded answer asked for."""
    names: dict[str, int] = field(default_factory=dict)
    """Identifiers in the answer that stood in an earlier tool result."""
    copied: frozenset[str] = frozenset()
    """Those of them that nobody had written before: they can only be copied from a result."""
    own_words: frozenset[str] = frozenset()
    """Identifiers in the answer that only the text of the model's own earlier answers held."""


def has_code_shape(name: str) -> bool:
    """Whether an identifier looks like one of a program's, or like a path, and not like a number, a
    quantity, a date or a hash: letters with an underscore, a slash, a capital or a dot inside."""
    return bool(_CODE.search(name) and _SHAPED.search(name))


def needs_of(transcript: Transcript) -> list[Needs]:
    """The needs of each call of a recorded session, in order."""
    messages = [recorded.message for recorded in transcript.messages]
    texts = [texts_of(message) if is_sent(message) else [] for message in messages]
    in_results: dict[str, int] = {}
    written: set[str] = set()
    said: set[str] = set()
    elsewhere: set[str] = set()
    needs: list[Needs] = []
    done = 0
    for call in transcript.calls:
        for index in range(done, call.seen):
            names = frozenset[str]().union(*map(identifiers, texts[index]))
            if messages[index].get("role") == "toolResult":
                in_results.update(dict.fromkeys(names, index))
            else:
                written |= names
            own_text = names_said(messages[index]) if texts[index] else frozenset()
            said |= own_text
            # What an answer both says and writes into a call stands in the call as well.
            elsewhere |= names - own_text | names_asked(messages[index], own_text)
        done = call.seen
        answer = messages[call.seen]
        used = names_said(answer) | names_asked(answer)
        own = _needs(answer, used, in_results, texts[: call.seen])
        own.copied = frozenset(own.names) - written
        own.own_words = (used & said) - elsewhere
        needs.append(own)
    return needs


def names_said(message: Message) -> frozenset[str]:
    """The identifiers in the text of an answer; none of other messages."""
    if message.get("role") != "assistant":
        return frozenset()
    return frozenset[str]().union(*map(identifiers, texts_in(message.get("content"))))


def names_asked(message: Message, among: frozenset[str] | None = None) -> frozenset[str]:
    """The identifiers in the arguments of an answer's calls; of `among` only."""
    if message.get("role") != "assistant" or among == frozenset():
        return frozenset()
    calls = (b.get("arguments") for b in blocks_of(message) if b.get("type") == "toolCall")
    names = frozenset[str]().union(*(identifiers(t) for each in calls for t in leaves(each)))
    return names if among is None else names & among


def _needs(
    answer: Message, used: frozenset[str], in_results: dict[str, int], texts: Sequence[list[str]]
) -> Needs:
    needs = Needs()
    for block in blocks_of(answer):
        arguments = block.get("arguments")
        if block.get("name") == "edit" and isinstance(arguments, dict):
            olds = (edit.old for edit in edits_of(arguments))
            needs.edits += [(old, _newest_holder(old, texts)) for old in olds if old.strip()]
    needs.names = {name: in_results[name] for name in used if name in in_results}
    return needs


def _newest_holder(text: str, texts: Sequence[list[str]]) -> int | None:
    for index in range(len(texts) - 1, -1, -1):
        if any(text in held for held in texts[index]):
            return index
    return None


@lru_cache(maxsize=20_000)
def _names_in(shape: Shape) -> tuple[frozenset[str], frozenset[str]]:
    """The identifiers that can be read in a message, and those of them that only the digest of a
    folded result, or of a run of them, names and its other lines do not."""
    texts = shape.texts
    names = frozenset[str]().union(*map(identifiers, texts))
    if shape.role == "user" and texts and is_run(texts[0]):
        return names, names - identifiers(texts[0].rpartition("\nnames:")[0] or texts[0])
    if shape.role != "toolResult" or not any(map(is_reference, texts)):
        return names, frozenset()
    lines = (text.partition("\n")[0] if is_reference(text) else text for text in texts)
    return names, names - frozenset[str]().union(*map(identifiers, lines))


class View:
    """What can be read in the newest prompt; kept up to date by differences."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}
        self._names: Counter[str] = Counter()
        self._in_digests: Counter[str] = Counter()
        """In how many messages only the digest of what is folded holds a name."""

    def show(self, shapes: Sequence[Shape]) -> None:
        """Go on to another prompt."""
        wanted = {shape.hash: shape for shape in shapes}
        for digest in self._shapes.keys() - wanted.keys():
            names, in_digest = _names_in(self._shapes[digest])
            self._names.subtract(names)
            self._in_digests.subtract(in_digest)
        for digest in wanted.keys() - self._shapes.keys():
            names, in_digest = _names_in(wanted[digest])
            self._names.update(names)
            self._in_digests.update(in_digest)
        self._shapes = wanted

    def has_name(self, name: str) -> bool:
        """Whether an identifier stands anywhere in the prompt."""
        return self._names[name] > 0

    def has_name_itself(self, name: str) -> bool:
        """The same without what digests of folded results name."""
        return self._names[name] > self._in_digests[name]

    def has_text(self, text: str) -> bool:
        """Whether a text stands in the prompt: in one piece, or line by line in several.

        Blank lines and white space around lines are let pass, as the host's `edit` does.
        """
        if self._stands(text):
            return True
        lines = {line for whole in text.split("\n") if (line := whole.strip())}
        return bool(lines) and all(map(self._stands, lines))

    def _stands(self, text: str) -> bool:
        return any(text in held for shape in self._shapes.values() for held in shape.texts)
