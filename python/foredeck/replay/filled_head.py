"""A head of a given length, to see what one costs with recorded sessions, which have none."""

from __future__ import annotations

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.engine.facilities import Facilities

_LINE = "notes/{0:03}.md: what was decided on day {0}, and what is still open about it #log"


class FilledSection:
    """See `foredeck.context.head.section.HeadSection`: as many notes as fit."""

    name = "notes"

    def text(self, limit: int) -> str:
        """Fills the whole of `limit`."""
        count = limit // len(_LINE.format(0)) + 1
        return "\n".join(_LINE.format(number) for number in range(count))[:limit]


def filled_head(_config: Config, _session: Session) -> Facilities:
    """Facilities of which there is nothing but that section."""
    return Facilities((FilledSection(),))
