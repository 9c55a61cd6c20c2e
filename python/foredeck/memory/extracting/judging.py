"""From a model's answer to what becomes of each line: kept, proposed to the user, or refused.

Pure: the same answer, sayings, tool results and known facts give the same judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.memory.extracting.likeness import FactComparison, KnownFact, compare
from foredeck.memory.extracting.lines import (
    LASTING,
    MAX_KEPT,
    ExtractedCategory,
    ExtractedLine,
    RefusalReason,
    RefusedLine,
    read_answer,
    unfit,
)
from foredeck.memory.extracting.origin import FactOrigin, SaidBy, ToolTexts, origin_of
from foredeck.memory.extracting.question import Saying
from foredeck.memory.lasting import says_it_lasts

Accept = Literal["ask", "user-stated", "off"]


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """What becomes of a line.

    fate             `keep` it, `propose` it to the user, or `refuse` it for `reason`
    fact, native     what would be kept; `native` is empty where it says nothing more
    stated           the user's own sentence is what is kept
    replaces         id of the entry that it is to replace
    nearest          kept entries like it, for the user to compare
    same             id of what says the same, where it is a duplicate
    """

    fate: Literal["keep", "propose", "refuse"]
    line: str
    reason: RefusalReason | None = None
    category: ExtractedCategory = "context"
    fact: str = ""
    native: str = ""
    stated: bool = False
    said_by: SaidBy = "assistant_turn"
    tool_originated: bool = False
    turn: str = ""
    replaces: str | None = None
    nearest: tuple[str, ...] = ()
    same: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a session's lines are judged by.

    accept   what becomes of facts that would outlive the session
    private  the session lets nothing out
    typed    what this user has typed in it
    earlier  ids of turns that were there before this user took part: of a file that was imported,
             resumed or copied, anybody may have written them
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
        return JudgedLine("refuse", shown, reason, same=compared.same.id or None)
    return JudgedLine(
        fate=_fate(lasting, origin, compared, around),
        line=shown,
        category=line.category,
        fact=fact,
        native="" if origin.stated or line.words == fact else line.words,
        stated=origin.stated is not None,
        said_by=origin.said_by,
        tool_originated=origin.tool_originated,
        turn=sayings[line.turn].turn,
        replaces=_replaced(lasting, origin, compared),
        nearest=tuple(other.id for other in compared.nearest),
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
    """The entry that gives way. What the user has stated gives way to nothing less by itself."""
    against = compared.contradicts
    if against is None or (against.stated and origin.stated is None and not lasting):
        return None
    return against.id
