"""Hits are counted up to a thousand: beyond that everybody who tells of them says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.context.tools.found import describe
from foredeck.mcp_server.answers import Answers
from foredeck.model.messages import store_message
from foredeck.model.records import TurnDocument
from foredeck.search.index import COUNTED
from foredeck.store.protocol import Batch
from search.sessions import START_MS, Searched, Talk, searched


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Searched]:
    with searched(tmp_path) as made:
        Talk(made.store, "s", cwd=str(tmp_path))
        say(made, 1, COUNTED - 1)
        yield made


def say(stored: Searched, first: int, last: int) -> None:
    """Turns that all say the same word, in one transaction."""
    blobs: dict[str, bytes] = {}
    turns = []
    for number in range(first, last + 1):
        said = {"role": "user", "content": f"quince {number}", "timestamp": START_MS}
        address = store_message(said, blobs)
        turns.append(TurnDocument(id=f"turn:s:{number}", session="s", user=address))
    stored.store.commit(Batch(puts=[turn.seal() for turn in turns], blobs=blobs))


def told(stored: Searched, home: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the command line, an MCP client and the model are told of how many there are."""
    capsys.readouterr()
    assert main(["search", "quince", "--home", str(home)]) == 0
    answers = Answers(Config(home=home), home)
    found = stored.find("quince")
    return [
        capsys.readouterr().out.splitlines()[-1],
        answers.search("quince", None, None, 1).splitlines()[0],
        re.split(";", describe(found, ["@1"] * len(found.hits), 0).splitlines()[-1])[0],
    ]


def test_up_to_a_thousand_hits_are_counted_and_more_are_said_to_be_more(
    stored: Searched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(stored, tmp_path, capsys) == ["999 hits in all.", "999 hits.", "10 of 999 hits"]
    say(stored, COUNTED, COUNTED + 1)
    assert told(stored, tmp_path, capsys) == [
        "1,000 hits or more in all.",
        "1,000 hits or more.",
        "10 of 1,000 or more hits",
    ]
