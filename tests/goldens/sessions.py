"""All sessions that there are goldens of, and where these are kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import pytest

from goldens.lines import Golden, Prompt, as_text, golden_of
from goldens.recorded import IN_SUITE, all_recorded
from goldens.scripted import all_scripted
from patience import be_patient

HERE = Path(__file__).parent
FILES = {"recorded": "recorded.txt", "script": "scripts.txt"}
"""The files of goldens, by the first word of their sessions' names."""


class GoldenSession(Protocol):
    """A session that can be had again on every machine."""

    @property
    def name(self) -> str:
        """What it is called in a file of goldens."""

    def prompts(self) -> Iterator[Prompt]:
        """What is sent at each call."""


def all_sessions(words: Sequence[str] = (), folder: Path = Path()) -> list[GoldenSession]:
    """Those whose names have all these words. The folder HERE has goldens only of recorded
    sessions that the tests replay, so that a change writes all of them anew in a minute."""
    recorded = IN_SUITE if folder == HERE else all_recorded()
    sessions: list[GoldenSession] = [*recorded, *all_scripted()]
    return [each for each in sessions if all(word in each.name for word in words)]


def prompt_at(session: GoldenSession, call: int) -> str:
    """The prompt of a call, counted from 1, for people; empty where there is no such call."""
    prompt = next(islice(session.prompts(), call - 1, None), None)
    return "" if prompt is None else as_text(prompt)


def kept(kind: str, folder: Path = HERE) -> dict[str, Golden]:
    """The goldens of a file, by the name of their session."""
    path = folder / FILES[kind]
    lines = path.read_text().splitlines() if path.exists() else []
    rows = (line.rsplit(" ", 2) for line in lines)
    return {name: Golden(whole, calls) for name, whole, calls in rows}


def keep(kind: str, folder: Path, goldens: dict[str, Golden]) -> None:
    """Write a file of goldens, in the order of their names."""
    rows = sorted(goldens.items())
    (folder / FILES[kind]).write_text(
        "".join(f"{name} {one.whole} {one.calls}\n" for name, one in rows)
    )


def check(session: GoldenSession, folder: Path) -> None:
    """Fail where the prompts of a session are not those of its golden; the first that differs is
    left in `folder`."""
    old, new = kept(session.name.split()[0])[session.name], golden_of(session.prompts())
    if said := old.difference(new):
        call = old.first_difference(new)
        left = folder / "prompt.txt"
        left.write_text(prompt_at(session, call))
        pytest.fail(
            f"{session.name}: {said}\nThe prompt of call {call} is now {left}. In tests/, "
            f"`python -m goldens diff '{session.name}' {call} CHECKOUT` compares it with that of a "
            "checkout before the change; `python -m goldens write` keeps the new ones.",
            pytrace=False,
        )


def be_repeatable(patch: pytest.MonkeyPatch) -> None:
    """Be in one time zone on every machine, since some texts give local times; and patient."""
    be_patient(patch)
    patch.setenv("TZ", "UTC")
    time.tzset()
