"""Where a fact comes from: what the user said in so many words, what the agent said, what a tool
brought. Decided by comparing texts; what the model claims only says where to look.

A model's wording is never what the user stated, however close it comes. So what counts as stated
is a whole sentence of the user's, and that sentence is what is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.memory.extracting.lines import ExtractedLine
from foredeck.memory.extracting.question import Saying
from foredeck.memory.words import all_words, content_words, folded, share_in

SaidBy = Literal["user_turn", "assistant_turn"]

SUPPORTED = 0.5
"""Part of a fact's words that its conversation must hold; with less it is made up."""
FROM_TOOL = 0.5
"""Part of the words that the user did not say which tool results must hold to have brought them."""
PASTED_CHARS = 1_000
"""A message longer than this was not typed: nothing in it counts as stated."""
_SHORTEST, _LONGEST = 10, 240
"""Characters of a sentence that can be kept as it is."""
_LITERAL_WORDS = 3

_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?:[^\n.!?\u3002\uff01\uff1f]|[.!?](?=\S))+[.!?\u3002\uff01\uff1f]*")
_QUOTED_LINE = re.compile(r"^\s*(?:>|\||\+|-{3,}|\$ |#!|\d+:|[{}\[\]<])")
_SHOWS = re.compile(r"[:\uff1a]\s*$")
_QUESTION = re.compile(r"[?\uff1f]\W*$")


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Where a fact comes from.

    said_by          whose saying holds it
    stated           the user's own sentence that says so; None: the user did not say it so
    tool_originated  a tool result brought what the user did not say
    supported        what was said holds enough of it
    """

    said_by: SaidBy
    stated: str | None
    tool_originated: bool
    supported: bool


@dataclass(frozen=True, slots=True)
class ToolTexts:
    """Texts of tool results: their words, and all of it folded."""

    words: frozenset[str]
    folded: str

    @classmethod
    def of(cls, texts: Iterable[str]) -> ToolTexts:
        """Those of some results, in their order."""
        joined = "\n".join(texts)
        return cls(all_words(joined), f" {folded(joined)} ")


def origin_of(
    line: ExtractedLine,
    sayings: Mapping[int, Saying],
    tools: ToolTexts,
    typed: Sequence[str] = (),
) -> FactOrigin:
    """Where the fact of a line comes from. `typed`: what the user typed by their own hand; the
    message of which it is part may hold more, which files or programs have put there."""
    about = content_words(f"{line.fact} {line.words}")
    native = content_words(line.words)
    users = [saying for saying in sayings.values() if saying.role == "user"]
    user_words = all_words("\n".join(saying.text for saying in users))
    saying = sayings[line.turn]
    found = (stated_in(line.words, text) for text in typed if saying.role == "user")
    stated = next((each for each in found if each is not None and each in saying.text), None)
    if stated is not None and f" {folded(stated)} " in tools.folded:
        stated = None  # it was read from somewhere, and may be anybody's
    foreign = [word for word in about if word not in user_words]
    from_tool = share_in(foreign, tools.words) >= FROM_TOOL if foreign else False
    read = f" {folded(line.words)} " in tools.folded and len(native) >= _LITERAL_WORDS
    by_saying = saying.role == "user" and share_in(native, user_words) >= SUPPORTED
    return FactOrigin(
        said_by="user_turn" if by_saying else "assistant_turn",
        stated=stated,
        tool_originated=stated is None and (from_tool or read),
        supported=share_in(native, all_words(_joined(sayings.values()))) >= SUPPORTED,
    )


def stated_in(words: str, message: str) -> str | None:
    """The whole sentence of a user's message that holds these words; None where none does.

    Neither questions nor code, quoted lines, what follows a line with a colon at its end, and
    long pasted texts count: a user shows those without saying them.
    """
    wanted = folded(words)
    if len(message) > PASTED_CHARS or len(wanted.replace(" ", "")) < _SHORTEST // 2:
        return None
    for sentence in own_sentences(message):
        held = f" {wanted} " in f" {folded(sentence)} " or _within_unspaced(words, sentence)
        if held and _SHORTEST <= len(sentence) <= _LONGEST and not _QUESTION.search(sentence):
            return sentence
    return None


def _within_unspaced(words: str, sentence: str) -> bool:
    """Scripts without spaces have no whole words to find."""
    return not words.isascii() and folded(words) in folded(sentence)


def own_sentences(message: str) -> Sequence[str]:
    """What a message of the user's says by itself: without code, quotes, and what it shows."""
    typed = _FENCED.sub("\n", message)
    lines = [*_until_shown(typed.splitlines())]
    found = (sentence.strip() for line in lines for sentence in _SENTENCE.findall(line))
    return [sentence.lstrip("-*• \t") for sentence in found if sentence]


def _until_shown(lines: Iterable[str]) -> Iterator[str]:
    """Lines that are said. What follows one that ends with a colon is shown: a mail, a list,
    whatever the user wants read."""
    for line in lines:
        if not _QUOTED_LINE.match(line):
            yield line
        if _SHOWS.search(line):
            return


def _joined(sayings: Iterable[Saying]) -> str:
    return "\n".join(saying.text for saying in sayings)
