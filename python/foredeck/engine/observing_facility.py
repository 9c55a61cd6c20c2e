"""Observing in an opened session, and `/foredeck observe`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, get_args

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.request import Inbox
from foredeck.context.state.session import SessionFolder
from foredeck.engine.observing import (
    GUESS,
    ChatBefore,
    Observing,
    mode_named,
    observing_settings,
)
from foredeck.errors import StoreError, ToolError
from foredeck.model.figures import counted
from foredeck.model.observations import Mode, Work, observing_id
from foredeck.observations.reading import OtherSessionsSection
from foredeck.observations.rules import TimingRules, coverage, to_condense
from foredeck.store.clock import now_ms
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.engine.asking import SessionAsking
    from foredeck.observations.keeping import ObservationKeeper


log = logging.getLogger(__name__)

MODES: tuple[Mode, ...] = get_args(Mode)
USAGE = "It is /foredeck observe [yes | status | reflect | mode NAME]."
OFF = "This session is not observed: `observations` is off, or it is a subagent's."


def make_observing(
    config: Config, objects: Objects, chat: Chat, inbox: Inbox, session_folder: SessionFolder
) -> Observing | None:
    """The observer; None if off, in a replay, and for a subagent.

    Clears what a killed engine left.
    """
    info = objects.info
    if config.observations == "off" or not info.is_live:
        return None
    settings, store = observing_settings(config), objects.store
    if objects.is_an_agents():
        return None
    rules, project = settings.rules, session_folder.project.id
    key = info.id if rules.scope == "thread" else project
    sessions = (info.id, *sorted(info.ancestors))
    observing = Observing(
        objects,
        chat,
        inbox,
        settings,
        sessions,
        lambda: _keeper(info, store, key, project, rules),
        _run,
    )
    _clear_stale(objects.store, inbox, observing, key)
    return observing


def others_section(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> OtherSessionsSection | None:
    """Other sessions' notes in the head; None unless notes belong to the project."""
    is_shared = config.observations != "off" and config.observing.scope == "resource"
    if not is_shared or not info.is_live:
        return None
    return OtherSessionsSection(store, session_folder.project.id, info.family)


def _keeper(
    info: SessionInfo, store: Store, key: str, project: str, rules: TimingRules
) -> ObservationKeeper:
    # Not at the top: most sessions end before there is anything to observe.
    from foredeck.observations.keeping import ObservationKeeper
    from foredeck.observations.lease import ObservingLease

    lease = ObservingLease(store, key, rules.scope)
    return ObservationKeeper(lease, info.id, sorted(info.ancestors), project, rules)


async def _run(
    observing: Observing,
    asking: SessionAsking,
    work: Work,
    before: ChatBefore | None,
    under_way: bool,
) -> None:
    # Loads with the first chunk that is observed: most sessions end before.
    from foredeck.engine.observing_runs import ObservingRun

    await ObservingRun(observing, asking, work, before).run(under_way=under_way)


def _clear_stale(store: Store, inbox: Inbox, observing: Observing, key: str) -> None:
    try:
        lease_head = store.head(observing_id(key))
        if lease_head is None or lease_head.fields.get("work") is None:
            return
        stale = observing.keeper.lease.clear_stale()
    except StoreError as error:
        log.info("whether an observation was cut off is not known: %s", error)
        return
    if stale:
        inbox.user_messages.append(f"foredeck: {stale}")


def observe_command(observing: Observing | None, arguments: str) -> str:
    """The answer for the user. Raises `ToolError`."""
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
