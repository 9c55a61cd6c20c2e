"""From a model's answer to what becomes of each line: kept, proposed to the user, or refused.

Pure: the same answer, sayings, tool results and known facts give the same judgement. Whose words a
fact is made of is decided by comparing texts; what the model claims only says where to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.memory.question import (
    LASTING,
    MAX_KEPT,
    ExtractedCategory,
    ExtractedLine,
    RefusalReason,
    RefusedLine,
    Saying,
    read_answer,
    unfit,
)
from foredeck.memory.words import (
    FactComparison,
    KnownFact,
    all_words,
    compare,
    content_words,
    folded,
    says_it_lasts,
    share_in,
)

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

Accept = Literal["ask", "user-stated", "off"]


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """What becomes of a line.

    fate             `keep` it, `propose` it to the user, or `refuse` it for `reason`
    fact, native     what would be kept; `native` is empty where it says nothing more
    stated           the user's own sentence is what is kept
    replaces         id of the entry that it is to replace
    """

    fate: Literal["keep", "propose", "refuse"]
    line: str
    reason: RefusalReason | None = None
    category: ExtractedCategory = "context"
    fact: str = ""
    native: str = ""
    stated: bool = False
    tool_originated: bool = False
    turn: str = ""
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a session's lines are judged by.

    accept   what becomes of facts that would outlive the session
    private  the session lets nothing out
    typed    what this user has typed in it
    earlier  ids of turns that were there before this user took part
    """

    accept: Accept = "user-stated"
    private: bool = False
    typed: Sequence[str] = ()
    earlier: frozenset[str] = frozenset()


def judge(
    answer: str,
    sayings: Sequence[Saying],
    tools: ToolTexts,
    known: Mapping[str, Iterable[KnownFact]],
    around: Surroundings,
) -> list[JudgedLine]:
    """What becomes of each line of an answer, in its order.

    `sayings`: those that were in the question; `known`: by category, what is there already.
    """
    numbered = {saying.number: saying for saying in sayings}
    there = {category: list(facts) for category, facts in known.items()}
    judged: list[JudgedLine] = []
    taken = 0
    for read in read_answer(answer, numbered):
        if isinstance(read, RefusedLine):
            judged.append(JudgedLine("refuse", read.line, read.reason))
            continue
        found = _judge_line(read, numbered, tools, there, around)
        if found.fate != "refuse":
            taken += 1
            if taken > MAX_KEPT:
                found = JudgedLine("refuse", found.line, "too many")
            else:
                there.setdefault(read.category, []).append(KnownFact("", found.fact, "waiting"))
        judged.append(found)
    return judged


def _judge_line(
    line: ExtractedLine,
    sayings: Mapping[int, Saying],
    tools: ToolTexts,
    known: Mapping[str, Sequence[KnownFact]],
    around: Surroundings,
) -> JudgedLine:
    shown = f"{line.category}|turn-{line.turn}|{line.fact}|{line.words}"
    lasting = line.category in LASTING
    if lasting and (around.private or around.accept == "off"):
        return JudgedLine("refuse", shown, "private" if around.private else "off")
    # What was there before this user took part, anybody may have written: of a file that was
    # imported, resumed or copied.
    typed = () if sayings[line.turn].turn in around.earlier else around.typed
    origin = origin_of(line, sayings, tools, typed)
    if not origin.supported:
        return JudgedLine("refuse", shown, "unsupported")
    fact = origin.stated or line.fact
    if origin.stated is not None and (unfitting := unfit(fact, fact)) is not None:
        return JudgedLine("refuse", shown, unfitting)
    compared = compare(fact, known.get(line.category, ()))
    if compared.same is not None:
        reason: RefusalReason = "duplicate"
        if compared.same.state == "refused":
            reason = "refused before"
        return JudgedLine("refuse", shown, reason)
    return JudgedLine(
        fate=_fate(lasting, origin, compared, around),
        line=shown,
        category=line.category,
        fact=fact,
        native="" if origin.stated or line.words == fact else line.words,
        stated=origin.stated is not None,
        tool_originated=origin.tool_originated,
        turn=sayings[line.turn].turn,
        replaces=_replaced(lasting, origin, compared),
    )


def _fate(
    lasting: bool, origin: FactOrigin, compared: FactComparison, around: Surroundings
) -> Literal["keep", "propose"]:
    if not lasting:
        return "keep"
    # What goes against an entry may also hold beside it, which words alone do not tell.
    asked = around.accept == "ask" or compared.contradicts is not None
    stated = origin.stated is not None and says_it_lasts(origin.stated)
    return "keep" if stated and not asked else "propose"


def _replaced(lasting: bool, origin: FactOrigin, compared: FactComparison) -> str | None:
    """The entry that gives way."""
    against = compared.contradicts
    # What the user has stated gives way to nothing less by itself.
    if against is None or (against.stated and origin.stated is None and not lasting):
        return None
    return against.id


# Where a fact comes from: what the user said in so many words, what the agent said, what a tool
# brought.
#
# A model's wording is never what the user stated, however close it comes: a page that it has read
# may have put it there. So what counts as stated is a whole sentence of the user's, and that
# sentence is what is kept.


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Where a fact comes from.

    stated           the user's own sentence that says so; None: the user did not say it so
    tool_originated  a tool result brought what the user did not say
    supported        what was said holds enough of it
    """

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
    line: ExtractedLine, sayings: Mapping[int, Saying], tools: ToolTexts, typed: Sequence[str] = ()
) -> FactOrigin:
    """Where the fact of a line comes from. `typed`: what the user typed by their own hand; the
    message of which it is part may hold more, which files or programs have put there."""
    about = content_words(f"{line.fact} {line.words}")
    native = content_words(line.words)
    user_words = _words_of(saying for saying in sayings.values() if saying.role == "user")
    saying = sayings[line.turn]
    found = (stated_in(line.words, text) for text in typed if saying.role == "user")
    stated = next((each for each in found if each is not None and each in saying.text), None)
    if stated is not None and f" {folded(stated)} " in tools.folded:
        stated = None  # it was read from somewhere, and may be anybody's
    foreign = [word for word in about if word not in user_words]
    from_tool = share_in(foreign, tools.words) >= FROM_TOOL if foreign else False
    read = f" {folded(line.words)} " in tools.folded and len(native) >= _LITERAL_WORDS
    return FactOrigin(
        stated=stated,
        tool_originated=stated is None and (from_tool or read),
        supported=share_in(native, _words_of(sayings.values())) >= SUPPORTED,
    )


def stated_in(words: str, message: str) -> str | None:
    """The whole sentence of a user's message that holds these words; None where none does."""
    # Neither questions nor code, quoted lines, what follows a line with a colon at its end, and
    # long pasted texts count: a user shows those without saying them.
    wanted = folded(words)
    if len(message) > PASTED_CHARS or len(wanted.replace(" ", "")) < _SHORTEST // 2:
        return None
    for sentence in own_sentences(message):
        # Scripts without spaces have no whole words to find.
        whole = f" {wanted} " if words.isascii() else wanted
        held = whole in f" {folded(sentence)} "
        if held and _SHORTEST <= len(sentence) <= _LONGEST and not _QUESTION.search(sentence):
            return sentence
    return None


def own_sentences(message: str) -> Sequence[str]:
    """What a message of the user's says by itself: without code, quotes, and what it shows."""
    typed = _FENCED.sub("\n", message)
    lines = [*_until_shown(typed.splitlines())]
    found = (sentence.strip() for line in lines for sentence in _SENTENCE.findall(line))
    return [sentence.lstrip("-*• \t") for sentence in found if sentence]


def _until_shown(lines: Iterable[str]) -> Iterator[str]:
    """Lines that are said."""
    # What follows a line that ends with a colon is shown: a mail, a list, whatever is to be read.
    for line in lines:
        if not _QUOTED_LINE.match(line):
            yield line
        if _SHOWS.search(line):
            return


def _words_of(sayings: Iterable[Saying]) -> frozenset[str]:
    return all_words("\n".join(saying.text for saying in sayings))
