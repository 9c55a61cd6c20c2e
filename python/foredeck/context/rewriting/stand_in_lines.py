"""The lines over texts that stand in place of chat."""

from __future__ import annotations

from foredeck.context.state.stand_ins import StandInKind
from foredeck.context.wording import turns_span

_HOW = {"observation": "as noted down", "reflection": "condensed from notes"}
_HOW_TO_READ = (
    "How to read notes: where two differ, the newer one holds. Answer with the paths and names "
    'that they give, not in general, and see to blockers first. "(not in the sources: x)" means '
    "that no message has the name x."
)


def stand_in_heading(kind: StandInKind, ordinal: int, first: int, last: int, *, leads: bool) -> str:
    """What stands over an observation or a reflection in place of turns `first` to `last`.

    `leads`: it is the first in the prompt, and says how all of them are read.
    """
    turns = f"{first}-{last}" if last > first else str(first)
    heading = (
        f"[foredeck] {turns_span(first, last)} of this chat, {_HOW[kind]} (@{ordinal}): derived, "
        f'not the user\'s words. activate "@{ordinal} turns {turns}" shows them word for word.'
    )
    return f"{heading}\n{_HOW_TO_READ}" if leads else heading


def continuation(task: str, suggestion: str) -> str:
    """On the newest message, once, when older ones have made way. `task`, `suggestion`: what was
    noted last of the work and of what would come next; empty where nothing was."""
    lines = [
        "[foredeck] Older messages have just made way for notes or a summary above. Go on with the "
        "work where it stands: nothing has been asked anew, and nothing need be said about this."
    ]
    if task:
        lines.append(f"<current-task>\n{task}\n</current-task>")
    if suggestion:
        lines.append(f"<suggested-next>\n{suggestion}\n</suggested-next>")
    return "\n".join(lines)


def run_heading(calls: int, whole: tuple[int, int] | None = None) -> str:
    """First line of what stands in place of calls in a row. `whole`: handle of the chat, and the
    turn, where what was said in it stood here, too."""
    counted = "1 call" if calls == 1 else f"{calls} calls"
    if whole is None:
        return f"[foredeck] {counted} stood here, folded:"
    chat, turn = whole
    what = f"{counted} and what was said" if calls else "what was said"
    shows = f'activate "@{chat} turn {turn}" shows it word for word'
    return f"[foredeck] Of turn {turn}, {what} stood here, folded; {shows}:"


def last_words(text: str) -> str:
    """The answer that ended a turn, on one line and cut short."""
    return f"said last: {text}"
