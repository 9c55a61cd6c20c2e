"""The lines over texts that take the place of chat."""

from __future__ import annotations

from foredeck.context.state.features import StandInKind
from foredeck.context.wording import turns_span
from foredeck.model.quoting import block, one_line

_HOW = {"observation": "from notes", "reflection": "condensed from notes"}
_HOW_TO_READ = (
    "How to read notes: where two differ, the newer one holds. Answer with the paths and names "
    'that they give, not in general, and see to blockers first. "(not in the sources: x)" means '
    "that no message has the name x."
)


def stand_in_heading(kind: StandInKind, ordinal: int, first: int, last: int, *, leads: bool) -> str:
    """What precedes an observation or a reflection in place of turns `first` to `last`.

    `leads`: it is the first in the prompt, and says how all of them are read.
    """
    turns = f"{first}-{last}" if last > first else str(first)
    heading = (
        f"[foredeck] {turns_span(first, last)}, {_HOW[kind]} (@{ordinal}), not the user's words. "
        f'activate "@{ordinal} turns {turns}" shows them in full.'
    )
    return f"{heading}\n{_HOW_TO_READ}" if leads else heading


def continuation(task: str, suggestion: str) -> str:
    """On the newest message, once, when older ones have made way. `task`, `suggestion`: what was
    noted last of the work and of what would come next; empty where nothing was."""
    lines = [
        "[foredeck] Notes above have just replaced older messages. Go on with the work: nothing "
        "new was asked, and no comment is needed."
    ]
    if task:
        lines.append(f"current task:\n{block(task)}")
    if suggestion:
        lines.append(f"suggested next:\n{block(suggestion)}")
    return "\n".join(lines)


def run_heading(calls: int, whole: tuple[int, int] | None = None) -> str:
    """First line of the text of calls in a row. `whole`: handle of the chat and number of the turn,
    where what was said in it is folded, too."""
    counted = "1 call" if calls == 1 else f"{calls} calls"
    if whole is None:
        return f"[foredeck] {counted}, folded:"
    chat, turn = whole
    what = f"Turn {turn}, folded: {counted}." if calls else f"Turn {turn}, folded."
    return f'[foredeck] {what} activate "@{chat} turn {turn}" shows it in full.'


def last_words(text: str) -> str:
    """The answer that ended a turn, cut short."""
    return f"answer: {one_line(text)}"
