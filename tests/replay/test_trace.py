"""Where a text stood in each prompt: against the prompts themselves, and as it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.accounting.cache import is_sent, texts_of
from foredeck.accounting.trace import trace
from foredeck.accounting.trace_spans import Visibility, rows_of, text_of
from foredeck.context.messages.items import message_text
from foredeck.lookup.prompts import prompt_at
from foredeck.model.records import call_id
from foredeck.store.place import open_store
from foredeck.store.store import Store
from foredeck_agents.histories.pi import load_transcript
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import replayed as replayed_session
from replay.recordings import SOURCE, Recording, text

PAUSE_MS = 3_600_000
LOG = "".join(f"step {n}: checked module_{n} in {n * 7} ms\n" for n in range(400))


def recorded() -> Recording:
    """A file and a log that fold over a pause; the log is asked back, and the file named."""
    recording = Recording()
    recording.user("Look at the source.")
    recording.run("toolu_1", "read", SOURCE, path="src/values.ts")
    recording.run("toolu_2", "bash", LOG, command="make check")
    # The five newest results stay.
    for number in range(5):
        output = f"new {number} for module_399\n"
        recording.run(f"toolu_n{number}", "bash", output, command=f"test {number}")
    recording.assistant(text("There are 79 values."))
    for number in range(8):
        recording.user(f"And number {number}?", wait_ms=PAUSE_MS)
        recording.run(f"toolu_t{number}", "bash", f"nothing {number}\n", command=f"true {number}")
        recording.assistant(text("Nothing."))
    recording.user("What did the log say of module_77?", wait_ms=PAUSE_MS)
    recording.run("toolu_3", "bash", "step 77: checked module_77\n", command="make check | grep 77")
    recording.assistant(text("It was checked."))
    return recording


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of the session, with its recorded file beside it."""
    folder = tmp_path_factory.mktemp("trace")
    path = recorded().write(folder / "session.jsonl")
    with replayed_session(load_transcript(path), home=folder / "home"):
        pass
    return folder


@pytest.fixture
def store(replayed: Path) -> Iterator[Store]:
    with closing(open_store(ReplayOptions().config(replayed / "home"))) as opened:
        yield opened


def visible(store: Store, call: int, wanted: str) -> bool:
    """Whether a text stands anywhere in the prompt that the store gives back."""
    prompt = prompt_at(store, Recording.id, call)
    texts = [message_text(message) for message in prompt.system]
    texts += [t for message in prompt.messages if is_sent(message) for t in texts_of(message)]
    return any(wanted in each for each in texts)


@pytest.mark.parametrize(
    "wanted", ["value12 ", "module_77", "module_311", "src/values.ts", "And number 3", "nowhere"]
)
def test_it_agrees_with_the_prompts(store: Store, wanted: str) -> None:
    calls = len(store.query("call", {"session": Recording.id}))
    found = trace(store, Recording.id, wanted, call_id(Recording.id, calls))
    assert found.calls == calls == sum(span.calls for span in found.spans)
    for span in found.spans:
        shows = span.visibility in (Visibility.IN_VIEW, Visibility.ANNOUNCED)
        for call in range(span.first, span.last + 1):
            assert visible(store, call, wanted) == shows, (call, span)


def test_what_folded_and_came_back(store: Store) -> None:
    calls = len(store.query("call", {"session": Recording.id}))
    found = trace(store, Recording.id, "module_77", call_id(Recording.id, calls))
    states = [span.visibility for span in found.spans]
    assert states[:2] == [Visibility.NEVER_SEEN, Visibility.IN_VIEW]
    assert states[2] in (Visibility.FOLDED, Visibility.ANNOUNCED)
    assert states[-1] == Visibility.IN_VIEW
    folded = found.spans[2]
    assert folded.reason == "cold"
    assert folded.tokens == pytest.approx(len(LOG) / 4, rel=0.3)
    assert folded.cost == pytest.approx(folded.tokens * 0.1 * folded.calls)
    assert "result of bash make check (@" in text_of(found)
    assert "the provider's cache had expired" in text_of(found)


def test_a_place_that_is_no_longer_in_view_is_not_named_any_more(store: Store) -> None:
    calls = len(store.query("call", {"session": Recording.id}))
    found = trace(store, Recording.id, "module_399", call_id(Recording.id, calls))
    names = [{place.what for place in span.best} for span in found.spans]
    in_view = [
        "result of bash make check" in each
        for span, each in zip(found.spans, names, strict=True)
        if span.visibility == Visibility.IN_VIEW
    ]
    assert len(in_view) > 1
    assert in_view[0]
    assert not any(in_view[1:])


def test_what_keeping_a_handle_would_have_cost_is_of_its_content(store: Store) -> None:
    calls = len(store.query("call", {"session": Recording.id}))
    found = trace(store, Recording.id, "@5", call_id(Recording.id, calls))
    folded = [span for span in found.spans if span.is_folded]
    assert len(folded) > 1
    calls_folded = sum(span.calls for span in folded)
    cost = sum(span.cost for span in folded)
    assert cost == pytest.approx(folded[0].tokens * 0.1 * calls_folded, rel=0.01)
    assert text_of(found).endswith(" input tokens")


def test_a_call_before_its_text(store: Store) -> None:
    found = trace(store, Recording.id, "module_77", call_id(Recording.id, 1))
    assert [(span.first, span.last, span.visibility) for span in found.spans] == [
        (1, 1, Visibility.NEVER_SEEN)
    ]
    assert rows_of(found) == [("1", "never seen", "")]
    assert text_of(found).startswith("Looked over 1 call of the branch that ends at call 1.\n")


def test_the_command(replayed: Path, foredeck: Foredeck) -> None:
    home = ["--home", str(replayed / "home")]
    stored = foredeck.json("trace", "module_77", Recording.id[:6], *home)
    assert foredeck.json("trace", "module_77", replayed / "session.jsonl") == stored
    assert stored["spans"][2]["reason"] == "cold"
    printed = foredeck("trace", "module_77", Recording.id[:6], *home)
    assert printed.splitlines()[0].startswith("'module_77' in session ")
    assert "in view" in printed


def test_what_it_refuses(replayed: Path, foredeck: Foredeck) -> None:
    home = ["--home", str(replayed / "home")]
    assert "nothing to look for" in foredeck("trace", " ", Recording.id, *home, code=2)
    said = foredeck("trace", "x", Recording.id, "--call", "999", *home, code=4)
    assert "has no call 999" in said
