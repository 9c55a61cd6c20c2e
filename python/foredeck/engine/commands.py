"""Commands typed by the user, with completion."""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

from foredeck.engine.chat_commands import (
    compact_command,
    context_command,
    cost_command,
    cost_of_off,
    name_command,
    object_choices,
    open_command,
    search_command,
    set_command,
    trace_command,
    why_command,
    window_view,
)
from foredeck.engine.memory_commands import memory_choices, memory_command
from foredeck.engine.observing import GUESS, Observing, mode_named
from foredeck.engine.opened import OpenedSession, go_private
from foredeck.engine.tasks import task_choices, tasks_command
from foredeck.errors import ToolError
from foredeck.home import command_file
from foredeck.hosts.protocol import Choice, CommandResult
from foredeck.model.figures import counted
from foredeck.model.observations import Mode
from foredeck.model.quoting import one_line
from foredeck.observations.rules import coverage, to_condense
from foredeck.store.clock import now_ms
from foredeck.timeline.rewind_command import calls_with_changes, rewind_command

MOST = 50
"""Most completions."""


def run_command(opened: OpenedSession, name: str, args: str) -> CommandResult:
    """The answer for the user. Raises `ToolError` with what to type instead."""
    if name == "complete":
        return {"text": "", "choices": choices(opened, args)}
    command = _COMMANDS.get(name)
    if command is None:
        raise ToolError(f"foredeck has no command {name!r}. Commands: {', '.join(_OF_FOREDECK)}.")
    answer = command.run(opened, args)
    return {"text": answer} if isinstance(answer, str) else answer


def choices(opened: OpenedSession, typed: str) -> list[Choice]:
    """Completions of the typed arguments; none if one is complete, so that Enter sends it."""
    name, _, rest = typed.partition(" ")
    verb, _, typed_name = rest.partition(" ")
    command = _COMMANDS.get(verb if name == "foredeck" else name)
    available = [] if command is None else list(command.choices(opened, verb))
    if any(typed_name in (name, name.removeprefix("@")) for name, _ in available):
        return []
    needle = typed_name.lower().removeprefix("@")
    matches = [(n, text) for n, text in available if needle in f"{n} {text}".lower()]
    return [(f"{verb} {name}", one_line(text)) for name, text in matches[:MOST]]


def _private(opened: OpenedSession, _arguments: str) -> CommandResult:
    return {"text": go_private(opened.session), "private": True}


def _rewind(opened: OpenedSession, arguments: str) -> str:
    session = opened.session
    return rewind_command(session.objects.store, session.info, opened.config.home, arguments)


def _calls_with_changes(opened: OpenedSession, _verb: str) -> Iterable[Choice]:
    return calls_with_changes(opened.session.objects.store, opened.session.info)


def _no_choices(_opened: OpenedSession, _verb: str) -> Iterable[Choice]:
    return ()


def _words(*words: str) -> Callable[[OpenedSession, str], Iterable[Choice]]:
    return lambda _opened, _verb: ((word, "") for word in words)


def _on_path(opened: OpenedSession, _arguments: str) -> str:
    return put_on_path(opened.config.home)


def put_on_path(home: Path) -> str:
    """Links (on Windows copies) the command line into the user's program folder. Raises
    `ToolError`."""
    file = command_file(home)
    if file is None:
        raise ToolError("There is no command line yet: type /foredeck setup first.")
    is_windows = sys.platform == "win32"
    local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    folder = (
        Path(local, "Microsoft", "WindowsApps") if is_windows else Path.home() / ".local" / "bin"
    )
    target = folder / file.name
    try:
        # Also a link that leads nowhere is not replaced: a user made it.
        if not os.path.lexists(target):
            folder.mkdir(parents=True, exist_ok=True)
            (shutil.copyfile if is_windows else os.symlink)(file, target)
        is_ours = (
            filecmp.cmp(file, target, shallow=False)
            if is_windows
            else target.resolve() == file.resolve()
        )
    except OSError as error:
        raise ToolError(f"{target} cannot be made or read: {error}.") from error
    if not is_ours:
        again = "remove it, then type /foredeck setup path again"
        raise ToolError(f"{target} is there already; {again}.")
    text = f"{target} runs foredeck's command line."
    if shutil.which("foredeck"):
        return text
    return f"{text} Add {folder} to your PATH to type just foredeck."


# Observing


MODES: tuple[Mode, ...] = get_args(Mode)
OBSERVE_USAGE = "It is /foredeck observe [yes | status | reflect | mode NAME]."
NOT_OBSERVED = "This session is not observed: `observations` is off, or it is a subagent's."


def observe_command(opened: OpenedSession, arguments: str) -> str:
    """The answer for the user. Raises `ToolError`."""
    observing = opened.facilities.part(Observing)
    if observing is None:
        raise ToolError(NOT_OBSERVED)
    verb, _, rest = arguments.partition(" ")
    if verb == "status" and not rest:
        return _status(observing)
    if verb == "mode":
        return _mode(observing, rest.strip())
    if arguments not in ("", "yes", "reflect"):
        raise ToolError(OBSERVE_USAGE)
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


def _status(observing: Observing) -> str:
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


# All of them


class _Command(NamedTuple):
    run: Callable[[OpenedSession, str], CommandResult | str]
    """On what follows its name."""
    choices: Callable[[OpenedSession, str], Iterable[Choice]] = _no_choices
    """Names that may follow a verb, with what they name."""


_OF_FOREDECK: Mapping[str, _Command] = {
    "context": _Command(context_command),
    "open": _Command(open_command, object_choices),
    **{
        verb: _Command(partial(set_command, verb), object_choices)
        for verb in ("pin", "unpin", "fold")
    },
    "name": _Command(name_command, object_choices),
    "why": _Command(why_command, object_choices),
    "cost": _Command(cost_command),
    "observe": _Command(
        observe_command, _words("yes", "status", "reflect", *(f"mode {mode}" for mode in MODES))
    ),
    "compact": _Command(compact_command, _words("--preview")),
    "private": _Command(_private),
    "rewind": _Command(_rewind, _calls_with_changes),
    "trace": _Command(trace_command),
}

_COMMANDS: Mapping[str, _Command] = {
    **_OF_FOREDECK,
    "view": _Command(lambda opened, _arguments: window_view(opened)),
    "search": _Command(search_command),
    "tasks": _Command(tasks_command, task_choices),
    "memory": _Command(memory_command, memory_choices),
    "off": _Command(cost_of_off),
    "path": _Command(_on_path),
    "setup": _Command(_on_path, _words("path")),
}
"""By the names that hosts send."""
