"""`foredeck cost`: stored sessions and recorded files."""

from __future__ import annotations

import re
import time
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path

import pytest
from stored_session import SESSION, make_home
from syrupy.assertion import SnapshotAssertion

from commands import Foredeck
from foredeck.cli.output import Progress
from foredeck.config import Config
from foredeck.model.records import AskedDocument
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch
from replay.recordings import START_MS, write_session

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "transcripts"


def test_a_stored_session(home: Path, foredeck: Foredeck) -> None:
    value = foredeck.json(home, "cost", SESSION[:6])
    assert value["session"] == SESSION
    assert [line["call"] for line in value["calls"]] == [1, 2, 3, 4, 5]
    parts = "session figure cache ttl_s chars_per_token reported_calls reported_of calls rebases"
    assert set(value) == {*parts.split(), "total", "asked"}
    assert value["asked"] == {}
    line = value["calls"][-1]
    assert line["ours"]["tokens"] > line["ours"]["cached"] > 0
    assert line["lost"] == {}
    total = value["total"]
    assert total["lost_tokens"] == {}
    assert total["cost"] == pytest.approx(sum(n["ours"]["cost"] for n in value["calls"]), abs=5)
    text = foredeck(home, "cost", SESSION)
    assert text.startswith(
        f"{value['figure']['text']}.\n\n{SESSION}\n5 calls, a model without a name\n"
    )
    assert "No cache hit was lost." in text


def test_a_session_goes_by_its_name(home: Path, foredeck: Foredeck) -> None:
    foredeck(home, "name", f"session:{SESSION}", "work")
    assert foredeck.json(home, "cost", "work")["session"] == SESSION


def test_a_recorded_file_is_replayed(home: Path, foredeck: Foredeck) -> None:
    file = home.parents[1] / f"{SESSION}.jsonl"
    value = foredeck.json("cost", str(file), "--cache", "anthropic")
    assert (value["session"], value["cache"], len(value["calls"])) == (file.name, "anthropic", 5)
    assert value["reported_of"] == "plain"


def test_a_long_session_shows_where_something_happened(tmp_path: Path, foredeck: Foredeck) -> None:
    messages = [{"role": role, "content": "x" * 400} for role in ("user", "assistant")] * 50
    file = write_session(tmp_path / "long.jsonl", *messages, id="long")
    short = foredeck("cost", file)
    assert "No call lost anything, and none was rewritten (--calls shows all 50)." in short
    assert "\n50    " in foredeck("cost", file, "--calls")
    day_later = [
        {**message, "timestamp": START_MS + 86_400_000 + number * 1000}
        for number, message in enumerate(messages)
    ]
    write_session(file, *messages[:60], *day_later[60:], id="long")
    late = foredeck("cost", file)
    assert "expiry" in late
    assert re.search(r"^\d+ +02-0[123] \d\d:", late, re.MULTILINE), "dated: two days"
    assert re.search(r"^\d+ further calls lost nothing", late, re.MULTILINE)


def test_prices_that_are_none_are_refused(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    file, prices = home.parents[1] / f"{SESSION}.jsonl", tmp_path / "prices.json"
    for value in ('{"input": 3}', '{"input": 1e999, "cacheRead": 0.3, "cacheWrite": 1}', "[1]"):
        prices.write_text(value)
        assert "has no prices" in foredeck("cost", file, "--prices", prices, code=2)


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded transcripts here")
@pytest.mark.parametrize("cache", ["ideal", "anthropic"])
def test_nothing_is_unexplained_in_a_recorded_session(cache: str, foredeck: Foredeck) -> None:
    for file in sorted(TRANSCRIPTS.glob("*.jsonl"), key=lambda file: file.stat().st_size)[:3]:
        value = foredeck.json("cost", str(file), "--cache", cache, "--set", "policy=adaptive")
        assert "unexplained" not in value["total"]["lost_tokens"]


def test_what_foredeck_itself_has_asked_stands_apart(tmp_path: Path, foredeck: Foredeck) -> None:
    home = make_home(tmp_path)
    asked = {"session": SESSION, "time_ms": 1, "ended_ms": 2, "model": "p/m", "price": 0.5}
    answered = {**asked, "outcome": "answered", "read": 9000, "fresh": 400, "output": 70}
    questions = [
        AskedDocument(id="asked:1", purpose="observe", cost=0.01, **answered),
        AskedDocument(id="asked:2", purpose="observe", outcome="timed_out", **asked),
        AskedDocument(id="asked:3", purpose="extract", outcome="refused", **asked),
    ]
    with closing(open_store(Config(home=home))) as store:
        store.commit(Batch(puts=[question.seal() for question in questions]))
    value = foredeck.json(home, "cost", SESSION)["asked"]
    tokens = {"read": 9000, "written": 0, "fresh": 400, "output": 70}
    assert value == {"observe": {"calls": 2, "failed": 1, **tokens, "cost": 0.51}}
    text = " ".join(foredeck(home, "cost", SESSION).split())
    assert "Of this, foredeck's own questions to a model: $0.51 " in text
    assert (
        "observe: asked 2 times, 1 without an answer; 9,400 tokens in (9,000 from the cache), "
        "70 out, $0.5100"
    ) in text


def test_all_that_is_stored_on_one_page(
    home: Path,
    tmp_path: Path,
    foredeck: Foredeck,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert re.sub(r"\d{4}-\d\d-\d\d", "<monday>", foredeck(home, "cost", "--all")) == snapshot
    assert [row["calls"] for row in foredeck.json(home, "cost")["weeks"]] == [5]
    assert foredeck(tmp_path, "cost").startswith(
        "No stored session has made a call with foredeck yet."
    )
    assert not list(tmp_path.iterdir()), "reading creates no store"


def test_histories_are_replayed_and_nothing_is_stored(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = home.parents[1] / f"{SESSION}.jsonl"
    bad = tmp_path / "bad.jsonl"
    bad.write_text("no session\n")
    store = tmp_path / "store"
    flags = ["--histories", str(file), str(bad), "--home", str(store)]
    value = foredeck.json("cost", *flags)
    (total,) = value["total"]
    assert (value["sessions"], total["calls"], total["estimate"]) == (1, 5, True)
    assert len(value["unread"]) == 1
    text = foredeck("cost", *flags)
    assert text.startswith(f"{total['text']}.\n1 session in 1 project")
    assert ", 1 of them from histories." in text
    assert "an estimate (~)" in text
    assert max(map(len, text.split("\n"))) <= 80
    assert not store.exists()


def fails_or_takes_long(path: Path) -> None:
    if path.stem == "long":
        time.sleep(3600)
    raise ValueError("cannot be read")


def test_what_is_stored_is_not_taken_for_a_history(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    text = foredeck(home, "cost", "--histories", tmp_path)
    assert "1 session in 1 project, 0 of them from histories." in text
    assert f"No other model call was found in histories. Looked in:\n  {tmp_path}" in text
    assert "estimate" not in text


def test_an_interrupt_gives_the_sums_so_far_and_waits_for_no_file(
    tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_steps: object, **_note: object) -> None:
        raise KeyboardInterrupt

    recorded = "foredeck_lab.cost_overview.recorded_figures"
    monkeypatch.setattr(recorded, fails_or_takes_long)
    monkeypatch.setattr(Progress, "advance", interrupted)
    files = [tmp_path / "long.jsonl", tmp_path / "short.jsonl"]
    for file in files:
        file.write_text("{}\n")
    foredeck(tmp_path / "store", "cost", "--histories", *files)
    assert "Interrupted: these are the sums so far." in foredeck.err
    assert not active_children()


def test_it_says_where_it_looked_for_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    home = ("--home", str(tmp_path / "none"))
    lines = foredeck("cost", "--histories", *home).splitlines()
    assert lines[0] == "No model call was found in histories. Looked in:"
    assert f"  {tmp_path}/codex/sessions" in lines
    (tmp_path / "noise.jsonl").write_bytes(bytes(range(256)) * 20)
    assert "noise.jsonl holds no session" in foredeck(
        "cost", "--histories", tmp_path / "noise.jsonl", *home
    )
