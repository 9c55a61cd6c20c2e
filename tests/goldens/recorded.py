"""Recorded sessions in several configurations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from foredeck.context.state.facilities import Facilities, FacilityInputs
from foredeck.engine.opening import configured_facilities
from foredeck_agents.histories.recordings import find_recordings, load_recording, stem_of
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from goldens.lines import Prompt

SHARED = Path(__file__).resolve().parents[3] / "shared"
FOLDERS = ("transcripts", "transcripts-other")

# Of one model: lists of prices change.
_DEFAULT = ReplayOptions(prices="claude-opus-4-5")

CONFIGURATIONS = {
    "default": _DEFAULT,
    "observed": replace(_DEFAULT, observes=True),
    "observed-60k": replace(_DEFAULT, observes=True, window=60_000),
    "restarted": replace(_DEFAULT, restart_every=20),
    "anthropic": replace(_DEFAULT, cache="anthropic"),
    "60k": replace(_DEFAULT, window=60_000),
    "head": replace(_DEFAULT, settings=("head.tokens=2000", "head.max_tokens=2000"), window=60_000),
    "seed-window": replace(_DEFAULT, policy="seed-window"),
    "keep-all": replace(_DEFAULT, policy="keep-all", window=60_000),
    "pools": replace(_DEFAULT, layout="pools"),
}


_LINE = "notes/{0:03}.md: what was decided on day {0}, and what is still open about it #log"


class FilledSection:
    """See `foredeck.context.head.HeadSection`: as many notes as fit."""

    name = "notes"

    def text(self, limit: int) -> str:
        """Fills the whole of `limit`."""
        count = limit // len(_LINE.format(0)) + 1
        return "\n".join(_LINE.format(number) for number in range(count))[:limit]


def filled_head(_opening: FacilityInputs) -> Facilities:
    """Facilities with that section alone."""
    return Facilities((FilledSection(),))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded session in one configuration."""

    path: Path
    configuration: str

    @property
    def name(self) -> str:
        """What it is called in a file of goldens."""
        return f"recorded {self.configuration} {stem_of(self.path)}"

    def prompts(self) -> Iterator[Prompt]:
        """What would have been sent at each call. A cache marker is a message at its end."""
        transcript, options = load_recording(self.path), CONFIGURATIONS[self.configuration]
        facilities = filled_head if self.configuration == "head" else configured_facilities
        with (
            tempfile.TemporaryDirectory(prefix="foredeck-goldens-") as home,
            closing(
                ReplayedSession(Path(home), transcript, options, facilities=facilities)
            ) as session,
        ):
            for number, call in enumerate(transcript.calls):
                if options.restart_every and number and number % options.restart_every == 0:
                    session.restart()
                prompt, _ = session.call(call)
                yield [*prompt, {"marker": session.marker}] if session.marker else prompt


def all_recorded() -> list[Recorded]:
    """Every recording that is here, in every configuration."""
    folders = [SHARED / name for name in FOLDERS if (SHARED / name).is_dir()]
    paths = find_recordings(folders) if folders else []
    return [Recorded(path, name) for name in CONFIGURATIONS for path in paths]


IN_SUITE = [
    Recorded(SHARED / path, name)
    for name in CONFIGURATIONS
    for path in (
        "transcripts/raquezha__pi.dev__2026-04-24_019dbe19-ca83-74b3-b3ca-230160eb3875.jsonl",
        "transcripts-other/FSM1__cipher-box__8a11a693-0.jsonl",
        "transcripts-other/PackmindHub__context-evaluator__33ed38b7-0.jsonl",
        "transcripts-other/entireio__git-sync__ffbceeb3-0.jsonl",
    )
]
"""What the tests replay: short sessions, whose prompts each configuration changes."""
