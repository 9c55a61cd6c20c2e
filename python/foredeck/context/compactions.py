"""Compactions: objects that cover messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foredeck.context import wording
from foredeck.context.messages.items import Item, text_block
from foredeck.context.messages.transcript import ChatTurn, TranscriptNames, markdown, split_turns
from foredeck.context.plan.ops import Say
from foredeck.context.state.chat import (
    Chat,
    Compactions,
    by_summary,
    host_compaction,
    summarised_by,
    turn_of,
)
from foredeck.context.state.objects import Objects
from foredeck.context.wording import summarised
from foredeck.errors import ToolError
from foredeck.model.documents import Fields, Provenance
from foredeck.model.identity import hash_text
from foredeck.model.messages import pack, unpack
from foredeck.model.observations import AskedBy, CompactionDocument, Writer, compaction_id
from foredeck.store.protocol import Head
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.context.summary import ChatSummary


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    by: AskedBy
    max_chars: int
    time_ms: int
    instructions: str = ""
    refused: Mapping[str, Any] = field(default_factory=dict)
    written: str | None = None
    """The summary of the host's model or `writer`; None if foredeck makes one."""
    writer: Writer = "foredeck"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction in the session's index."""

    id: str
    ordinal: int
    summary: str


def compact(
    objects: Objects,
    chat: Chat,
    items: Sequence[Item],
    request: SummaryRequest,
    *,
    first: int,
    previous: str | None = None,
    pinned: Sequence[int] = (),
    lists_losses: bool = True,
) -> Compacted:
    """Makes the object that covers these messages; the caller commits.

    `first`: number of the first user turn. `previous`: the compaction before.
    """
    before = None if previous is None else objects.workspace.head(previous)
    covers = [item.key.address for item in items]
    by, text = f"foredeck {request.max_chars}", request.written
    if text is not None:
        by = f"{request.writer} {hash_text(text)}"
    id = compaction_id(objects.info.id, covers, previous if before else None, by)
    # The id follows from what is covered: after a crash before the call record, or on another
    # branch, the same messages get the same summary.
    document = objects.store.get(id, CompactionDocument)
    if document is None:
        ordinal = objects.index.by_object.get(id, len(objects.index) + 1)
        turns = split_turns(items, first)
        summary = summary_of(objects, turns, ordinal, request, before, pinned)
        document = _document(objects, id, turns, items, summary, before)
        document.content = summary.long if text is None else text
        document.written_by = request.writer
        if lists_losses:
            # Loads with the first compaction, as in `summary_of`.
            from foredeck.context.summary import losses_of

            document.lost = losses_of(turns, names_of(objects), document.content)
    document.asked_by, document.instructions = request.by, request.instructions
    document.taken_back = None
    document.call, document.time_ms = chat.log.newest, request.time_ms
    document.refused, document.pinned = dict(request.refused), list(pinned)
    objects.workspace.put(document.seal())
    entry = objects.see_document(document)
    chat.compactions[id] = document.model_dump(exclude={"turns"})
    return Compacted(id, entry.ordinal, document.content or "")


def take_back(objects: Objects, compactions: Compactions, summary: str) -> None:
    """Marks a compaction as undone by the host; inherited ones stay."""
    id = by_summary(compactions, summary)
    document = None if id is None else objects.store.get(id, CompactionDocument)
    if document is None or document.session != objects.info.id:
        return
    document.taken_back = True
    objects.workspace.put(document.seal())
    objects.workspace.commit()
    compactions[document.id] = document.model_dump(exclude={"turns"})


def name_summary(objects: Objects, chat: Chat, items: Sequence[Item], start: int) -> None:
    """Adds a message after another's summary that names what it covers."""
    at_call = len(items) > 1 and items[1].kind == "result"
    id = None if start > 1 or at_call else summarised_by(chat.compactions, items)
    if id is None:
        return
    fields = chat.compactions[id]
    if fields["written_by"] != "foredeck":
        line = summarised(objects.index.by_object[id], fields.get("pinned") or ())
        chat.branch.plan.say(1, Say("list_start", [text_block(line)]), first=True)


def turn_number(chat: Chat, item: Item) -> int:
    """Number of the first user turn of a span that begins here."""
    return turn_of(chat, item) + (item.kind != "user")


def turns_of(
    document: CompactionDocument, first: int, last: int, blob: Callable[[str], bytes]
) -> str:
    """Turns of a compaction, word for word. Raises `ToolError` if it has none."""
    texts = [(number, text) for number, text in document.turns]
    return "\n".join(unpack(text, blob) for text in _among(texts, first, last))


def turns_of_branch(objects: Objects, chat: Chat, first: int, last: int) -> str:
    """Turns of the branch, word for word, compacted ones too. Raises `ToolError` if it has none."""
    items = chat.branch.plan.items
    newest = host_compaction(chat)
    texts = list(_compacted_turns(objects.store, newest))
    covered = 0 if newest is None else int(chat.compactions[newest]["last_turn"])
    rest = items if newest is None else items[1:]
    texts += [
        (turn.number, markdown(turn, names_of(objects))) for turn in split_turns(rest, covered + 1)
    ]
    if not texts:
        # An engine that was started in the middle of a turn: its first request brings the messages.
        raise ToolError("The turns of the chat can be had from the next model call on: try again.")
    return "\n".join(_among(texts, first, last))


def _compacted_turns(store: Store, id: str | None) -> Iterator[tuple[int, str]]:
    document = None if id is None else store.get(id, CompactionDocument)
    if document is not None:
        yield from _compacted_turns(store, document.previous)
        yield from ((number, unpack(text, store.blob)) for number, text in document.turns)


def _among(texts: Sequence[tuple[int, Any]], first: int, last: int) -> list[Any]:
    selection = [text for number, text in texts if first <= number <= last]
    if not selection:
        there = f"{texts[0][0]} to {texts[-1][0]}"
        raise ToolError(f"There are no turns {first}-{last} in it: it holds turns {there}.")
    return selection


def names_of(objects: Objects) -> TranscriptNames:
    """Lookups for this session's transcripts."""
    return TranscriptNames(objects.index.by_label.get, objects.info.cwd)


def summary_of(
    objects: Objects,
    turns: list[ChatTurn],
    ordinal: int,
    request: SummaryRequest,
    before: Head | None,
    pinned: Sequence[int],
) -> ChatSummary:
    """Summaries for handle `ordinal`; stores nothing. `pinned`: handles that leave the view."""
    # Not at the top: every call asks for compactions, and few sessions make one.
    from foredeck.context.summary import SummaryInput, summarise

    earlier, names = _earlier(objects, before), names_of(objects)
    # What is compacted to fit the window never holds the newest question.
    questions = request.by != "window"
    input = SummaryInput(turns, names, ordinal, _files(objects), earlier, pinned, questions)
    return summarise(input, request.max_chars)


def summary_lines(
    objects: Objects, request: SummaryRequest, items: Sequence[Item], first: int
) -> str:
    turns = split_turns(items, first)
    long = summary_of(objects, turns, 0, request, None, ()).long
    return "\n".join(long.split("\n")[1:])


def lines_around(objects: Objects, previous: str | None, pinned: Sequence[int]) -> list[str]:
    """The compaction before, and what is pinned."""
    before = None if previous is None else objects.workspace.head(previous)
    lines = [earlier] if (earlier := _earlier(objects, before)) else []
    return [*lines, wording.pinned_away(pinned)] if pinned else lines


def _earlier(objects: Objects, before: Head | None) -> str:
    if before is None:
        return ""
    ordinal = objects.index.by_object.get(before.id)
    return "" if ordinal is None else f"Before that, @{ordinal}: {before.fields.get('short')}"


def _files(objects: Objects) -> Callable[[str], tuple[int, Fields] | None]:
    def look(path: str) -> tuple[int, Fields] | None:
        object = objects.source.identify(path, objects.info.cwd or None)[0]
        ordinal = objects.index.by_object.get(object)
        head = None if ordinal is None else objects.workspace.head(object)
        return None if ordinal is None or head is None else (ordinal, head.fields)

    return look


def _document(
    objects: Objects,
    id: str,
    turns: list[ChatTurn],
    items: Sequence[Item],
    summary: ChatSummary,
    before: Head | None,
) -> CompactionDocument:
    names, blobs = names_of(objects), objects.workspace.blobs
    return CompactionDocument(
        id=id,
        session=objects.info.id,
        previous=None if before is None else before.id,
        first_turn=turns[0].number,
        last_turn=turns[-1].number,
        short=summary.short,
        turns=[[turn.number, pack(markdown(turn, names), blobs)] for turn in turns],
        entries=[items[0].key.entry, items[-1].key.entry],
        messages=len(items),
        asked_by="window",
        provenance=Provenance(origin=objects.info.id, generator="system"),
    )


def last_compaction(objects: Objects, compactions: Compactions) -> str:
    """The newest summary, and what it leaves out."""
    ordinals = {objects.index.by_object[id]: id for id in compactions}
    for ordinal in sorted(ordinals, reverse=True):
        document = objects.store.get(ordinals[ordinal], CompactionDocument)
        if document is not None and document.lost is not None:
            return report_of(f"@{ordinal}", document.content or "", document.lost)
    raise ToolError(
        "No chat of this session was compacted while foredeck was on. /foredeck compact --preview "
        "shows what a summary would say, and what it would not."
    )


def preview(objects: Objects, chat: Chat, max_chars: int) -> str:
    """The summary foredeck would write of all but the newest turn; stores nothing.

    Raises `ToolError` without an earlier turn.
    """
    from foredeck.context.summary import losses_of

    items = chat.branch.plan.items
    newest = max(0, chat.branch.plan.newest_question)
    before = host_compaction(chat)
    span = items[1 if before else 0 : newest]
    if not span:
        raise ToolError("There is nothing to compact: the chat has one turn.")
    fields = chat.compactions.get(before or "")
    turns = split_turns(span, int(fields["last_turn"]) + 1 if fields else 1)
    request = SummaryRequest("user", max_chars, span[-1].time_ms)
    head = None if before is None else objects.workspace.head(before)
    summary = summary_of(objects, turns, len(objects.index) + 1, request, head, ()).long
    lost = losses_of(turns, names_of(objects), summary)
    return report_of("What foredeck would write", summary, lost)


def report_of(what: str, summary: str, lost: str) -> str:
    return f"{what}:\n{summary}\n\nWhat it does not name:\n{lost}"
