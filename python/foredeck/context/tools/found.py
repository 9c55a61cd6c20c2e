"""What `memory-search` answers, as the model reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from foredeck.commands.output import counted
from foredeck.context.tools.asked_search import AskedSearch
from foredeck.model.quoting import block, name, one_line
from foredeck.model.short_texts import cut
from foredeck.search.index import IndexedText
from foredeck.search.searching import SearchHit, SearchResult
from foredeck.search.texts import VERSIONED
from foredeck.search.types import SEARCHED_TYPES

LINE_CHARS = 120
"""Of the passage of a hit that is not the best, which takes a line."""

NOT_UP_TO_DATE = (
    "The index is still being made: what is not found may be there. Ask again in a while."
)
NARROWER = (
    "activate brings one in full. More: limit. Narrower: "
    f"type ({', '.join(SEARCHED_TYPES)}), tool, path, task, since."
)


def describe(found: SearchResult, handles: Sequence[str], in_view: int) -> str:
    """The hits with their handles; `in_view`: how many were left out since the model sees them."""
    lines = []
    for number, (hit, handle) in enumerate(zip(found.hits, handles, strict=True)):
        near = [_neighbour(one, text, hit.entry) for one, text in hit.around if text]
        before = [line for is_before, line in near if is_before]
        after = [line for is_before, line in near if not is_before]
        lines += [_head(hit, handle), *before]
        if hit.snippet and (number == 0 or near):
            lines.append(block(hit.snippet))
        elif hit.snippet:
            lines[-1] += f": {cut(one_line(hit.snippet), LINE_CHARS)}"
        lines += after
    return "\n".join([*lines, _ending(found, len(handles), in_view)])


def nothing_found(asked: AskedSearch, in_view: int) -> str:
    """Where there is no hit: what to try instead."""
    if in_view:
        return f"Nothing beyond what you see already ({counted(in_view, 'hit')} in view)."
    where = {"project": "this project", "session": "this session", "all": "any session"}
    wider = "" if asked.scope == "all" else ', or scope "all"'
    return f"Nothing found in {where[asked.scope]}. Try fewer or other words{wider}."


def _head(hit: SearchHit, handle: str) -> str:
    entry = hit.entry
    about = [handle, _when(entry.time_ms), _kind(entry)]
    if entry.path:
        about.append(name(entry.path))
    if entry.type in VERSIONED and not entry.newest:
        about.append("older version")
    return f"{', '.join(about)} [{one_line(_why(hit.words))}]"


def _why(words: Sequence[str]) -> str:
    """The words that it was found by, without the parts of one that was found whole."""
    whole = (word for word in words if not any(word in other != word for other in words))
    return ", ".join(whole)


def _kind(entry: IndexedText) -> str:
    what = entry.role if entry.type in ("message", "toolcall") else ""
    if entry.type == "task":
        what = f"task {entry.role}"
    return one_line(what or entry.type) + (" failed" if entry.status == "fail" else "")


def _neighbour(entry: IndexedText, text: str, hit: IndexedText) -> tuple[bool, str]:
    is_before = entry.id < hit.id
    where = "before" if is_before else "after"
    return is_before, f"  {where}, {_kind(entry)}: {cut(one_line(text), LINE_CHARS)}"


def _ending(found: SearchResult, shown: int, in_view: int) -> str:
    seen = f" ({in_view} more in view already)" if in_view else ""
    more = found.total - shown - in_view
    if more <= 0:
        return f"{counted(shown, 'hit')}{seen}; activate brings one in full."
    newest = " among the newest texts" if found.is_part else ""
    return f"{shown} of {found.total:,} hits{newest}{seen}; {NARROWER}"


def _when(time_ms: int) -> str:
    """In UTC, so that the same hit reads the same on every machine."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
