"""`/foredeck observe`: note down now what was said and done; how far it is; which kind of work."""

from __future__ import annotations

from typing import get_args

from foredeck.engine.background.jobs import BackgroundWorker
from foredeck.engine.observing.observing import GUESS, Observing, mode_named
from foredeck.errors import ToolError
from foredeck.model.observations import Mode
from foredeck.observations.timing import coverage

USAGE = "It is /foredeck observe [yes | status | reflect | mode NAME]."
OFF = (
    "This session is not observed: `observations` is off, or it is a subagent's "
    "(observing.subagents)."
)


def observe_command(workers: tuple[BackgroundWorker, ...], arguments: str) -> str:
    """The answer, for the user. Raises `ToolError` with what to type instead."""
    observing = next((worker for worker in workers if isinstance(worker, Observing)), None)
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


def _observe(observing: Observing, *, at_any_price: bool) -> str:
    waiting = observing.pending()
    if not waiting:
        return "There is nothing to note: all of this chat is observed."
    observing.requested.add("observe")
    observing.at_any_price = at_any_price
    return f"Noting down {waiting:,} tokens of chat in the background ({_mode_line(observing)})."


def _reflect(observing: Observing) -> str:
    count = len(observing.on_branch.observations)
    if not count:
        return "There are no observations to condense."
    observing.requested.add("reflect")
    return f"Condensing observations in the background; there are {count}."


def _mode(observing: Observing, name: str) -> str:
    if name:
        if mode_named(name) is None and name != GUESS:
            known = ", ".join(get_args(Mode))
            raise ToolError(f"There is no mode {name!r}. Modes: {known}; or guess.")
        observing.choose(name)
    return f"This is observed as {_mode_line(observing)}."


def status_of(observing: Observing) -> str:
    """How far observing is on this branch."""
    noted, rules = observing.on_branch, observing.settings.rules
    seen = sum(placed.observation.document.covered_tokens for placed in noted.placed)
    when = "always" if observing.settings.always else "where it pays"
    lines = [
        f"Observed {when}; {_mode_line(observing)}.",
        f"{seen:,} tokens of chat are noted in {len(noted.observations)} observations and "
        f"{len(noted.reflections)} reflections of {observing.note_tokens():,} tokens; "
        f"{observing.pending():,} wait, and {rules.chunk.least:,} are observed at once at least.",
    ]
    left, seen_before = observing.left_tokens()
    if left:
        lines.append(
            f"{coverage(seen_before, left):.0%} of the {left:,} tokens that have left the prompt "
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
