"""`/foredeck compact --calls A-B`: a stretch of chat that the user has put away."""

from __future__ import annotations

import re

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.context.window.stretch import compact_calls
from foredeck.context.wording import handle
from foredeck.engine.settings import compaction_settings
from foredeck.errors import ToolError
from foredeck.hosts.pi.messages import name_of
from foredeck.hosts.protocol import CommandResult

FLAG = "--calls"

_CALLS = re.compile(r"--calls[ =](\d{1,9})(?:-(\d{1,9}))?")


def compact_stretch(session: Session, config: Config, arguments: str) -> CommandResult:
    """The answer, with the stretch that the host is to leave out. Raises `ToolError`."""
    asked = _CALLS.fullmatch(arguments)
    if asked is None:
        raise ToolError("It is /foredeck compact --calls A-B, with the numbers of two calls.")
    first, last = int(asked[1]), int(asked[2] or asked[1])
    stretch = compact_calls(session, first, last, compaction_settings(config).summary_chars)
    name = handle(stretch.made.ordinal)
    calls = f"call {first}" if first == last else f"calls {first} to {last}"
    return {
        "text": f"A summary, {name}, stands for the answers of {calls} from the next call on. "
        "/foredeck compact shows what it leaves out, /foredeck uncompact takes it back.",
        "stretch": {
            "first": name_of(stretch.first),
            "last": name_of(stretch.last),
            "summary": stretch.made.summary,
            "time_ms": stretch.last.time_ms,
        },
    }
