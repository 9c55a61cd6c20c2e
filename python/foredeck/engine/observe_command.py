"""`/foredeck observe`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from foredeck.engine.observing import GUESS, Observing, mode_named
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import Choice
from foredeck.model.figures import counted
from foredeck.model.observations import Mode
from foredeck.observations.rules import coverage, to_condense
from foredeck.store.clock import now_ms

MODES: tuple[Mode, ...] = get_args(Mode)
USAGE = "It is /foredeck observe [yes | status | reflect | mode NAME]."
OFF = "This session is not observed: `observations` is off, or it is a subagent's."


def observe_command(opened: OpenedSession, arguments: str) -> str:
    """The answer for the user. Raises `ToolError`."""
    observing = opened.facilities.part(Observing)
    if observing is None:
        raise ToolError(OFF)
    verb, _, rest = arguments.partition(" ")
    if verb == "status" and not rest:
        return status_of(observing)
    if verb == "mode":
        return _mode(observing, rest.strip())
    if arguments not in ("", "yes", "reflect"):
        raise ToolError(USAGE)
    if verb == "reflect":
        return _reflect(observing)
    return _observe(observing, at_any_price=verb == "yes")


def observe_choices(_opened: OpenedSession, _verb: str) -> Iterator[Choice]:
    for words in ("yes", "status", "reflect", *(f"mode {mode}" for mode in MODES)):
        yield words, ""


def _observe(observing: Observing, *, at_any_price: bool) -> str:
    waiting = observing.pending()
    if not waiting:
        return "There is nothing to note: all of this chat is observed."
    observing.requested.add("observe")
    observing.at_any_price = at_any_price
    return f"Noting down {waiting:,} tokens of chat in the background ({_mode_line(observing)})."


def _reflect(observing: Observing) -> str:
    notes, settings = observing.on_branch.notes, observing.settings
    count = to_condense(settings.rules, notes, now_ms(), observing.window, asked=True)
    if not count:
        return "There are no observations to condense."
    observing.requested.add("reflect")
    tokens = sum(note.tokens for note in notes[:count])
    what = f"the {count} oldest of {len(notes)} notes" if count < len(notes) else "all notes"
    return f"Condensing {what}, {tokens:,} tokens, in the background."


def _mode(observing: Observing, name: str) -> str:
    if name:
        if mode_named(name) is None and name != GUESS:
            raise ToolError(f"There is no mode {name!r}. Modes: {', '.join(MODES)}; or guess.")
        observing.choose(name)
    return f"This is observed as {_mode_line(observing)}."


def status_of(observing: Observing) -> str:
    """How far this branch is observed."""
    noted, rules = observing.on_branch, observing.settings.rules
    noted_tokens = sum(placed.observation.document.covered_tokens for placed in noted.placed)
    observations = counted(len(noted.observations), "observation")
    reflections = counted(len(noted.reflections), "reflection")
    when = "always" if observing.settings.always else "where it pays"
    lines = [
        f"Observed {when}; {_mode_line(observing)}.",
        f"{noted_tokens:,} tokens of chat are noted in {observations} and {reflections} of "
        f"{observing.note_tokens():,} tokens; "
        f"{observing.pending():,} wait, and {rules.chunk.least:,} are observed at once at least.",
    ]
    gone, seen_before = observing.left_tokens()
    if gone:
        lines.append(
            f"{coverage(seen_before, gone):.0%} of the {gone:,} tokens that have left the prompt "
            "were observed before."
        )
    if observing.reason:
        lines.append(f"No model is asked: {observing.reason}.")
    if observing.last:
        lines.append(f"The last time: {observing.last}")
    return "\n".join(lines)


def _mode_line(observing: Observing) -> str:
    mode = observing.mode()
    return f"{mode.mode.replace('_', ' ')} work: {mode.reason}"
