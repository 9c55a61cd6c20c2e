"""The figures of one session, compared between all screens that have them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from foredeck.config.load import Resolved
from foredeck.lookup.reader import Reader
from foredeck.model.figures import short_count
from foredeck.store.store import Store
from foredeck_bench.twin.script import Step, Thinking, call
from foredeck_inspector.pages import Asked as Page
from foredeck_inspector.pages import WebPage
from foredeck_inspector.views.calls import call_page
from foredeck_inspector.views.sessions import session_page
from foredeck_inspector.work import Work
from harness import Asked, Pi
from observed import answered, command_text, notified, session_of, stored

View = Callable[[Page], WebPage]
TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(900))


def working(first: int, calls: int) -> list[Step]:
    """So many calls with reasoning, and the end of the turn."""
    numbers = range(first, first + calls)
    steps: list[Step] = [
        [Thinking(f"thought {n} " * 40), call("bash", command=f"seq {n}00 {n}99")] for n in numbers
    ]
    return [*steps, "done"]


def inspected(view: View, pi: Pi, store: Store, **path: str | int) -> dict[str, Any]:
    """The values of an inspector's page, in the view of a session's calls."""
    request = Request({"type": "http", "path_params": path, "query_string": b"view=calls"})
    reader = Reader(pi.config())
    return view(
        Page(request, reader, store, Work(reader).patient(), Resolved(pi.config(), {}))
    ).data


def test_every_screen_has_the_same_figures(pi: Pi, asked: Asked) -> None:
    for number in range(5):
        (pi.repo / f"f{number}.txt").write_text(f"file {number}\n{TEXT}")
    reads: list[Step] = [call("read", path=f"f{number}.txt") for number in range(5)]
    model = pi.serve([*reads, *working(1, 7), *working(10, 3)])
    rpc = pi.rpc("Read.", "Go on.", foredeck=True, arguments=["--thinking", "low"])

    def answer(command: str) -> str:
        return command_text(rpc, command)

    why, window = answer("/foredeck why"), answer("/foredeck")
    folded, looked = answer("/foredeck why @5"), answer("/foredeck trace quick brown")
    with stored(pi) as store:
        session = session_of(store)
        page = inspected(session_page, pi, store, session=session)
    rows = page["listed"].rows
    account: dict[str, Any] = json.loads(asked("cost", session, "--json"))
    printed = asked("cost", session)

    # A rebase: by how much the prompt became shorter, and what was sent again.
    (rebase,) = account["rebases"]
    assert f"each call is {short_count(rebase['saved'])} tokens shorter" in why
    line = f"foredeck has folded {short_count(rebase['saved'])} of "
    assert any(text.startswith(line) for text in notified(rpc))
    assert 0 < rebase["lost"] <= answered(model)[rebase["call"] - 1].usage.written
    assert f"rewriting that pays: {short_count(rebase['lost'])}\n" in printed
    with stored(pi) as store:
        shown = inspected(call_page, pi, store, session=session, call=rebase["call"])
    assert shown["weighed"]["saves"] == rebase["saved"] > 10_000

    # A prompt: what was sent, and what plain Pi would have sent.
    last, newest = account["calls"][-1], rows[-1]
    sent, plain = newest["sent"], newest["plain"]
    assert f"{short_count(sent)} of " in window
    assert f"Plain Pi: {short_count(plain)}." in window
    assert abs(last["ours"]["tokens"] - sent) <= 2
    assert abs(last["plain"]["tokens"] - plain) <= 2
    with stored(pi) as store:
        shown = inspected(call_page, pi, store, session=session, call=newest["call"])
    assert (shown["tokens_sent"], shown["tokens_plain"]) == (sent, plain)

    # An object: the one rule, and what it would have cost to keep. A text: over which calls.
    assert f"at call {rebase['call']} because it pays" in folded
    assert "or policy" not in folded
    assert "would have cost $" in folded
    traced = json.loads(asked("trace", "quick brown", session, "--json"))
    assert looked.startswith(f"Looked over {traced['over']}.")
    assert traced["calls"] == len(account["calls"])
    assert traced["over"] in " ".join(asked("trace", "quick brown", session).split())

    # Money: what was saved is the difference of what is printed, on every screen.
    head = printed.split("\n")[0]
    saved, ours, plain_pi = (float(each) for each in re.findall(r"\$([\d.]+\d)", head))
    assert round(plain_pi - ours, 6) == saved
    assert page["figure"]["text"] + "." == head == answer("/foredeck cost").split("\n")[0]
    assert f"foredeck: {page['figure']['short']}" in rpc.statuses()[-1]
    assert json.loads(asked("cost", "--json"))["total"] == [account["figure"]] == [page["figure"]]
    assert f"${saved}" in asked("sessions")
    assert asked("cost").startswith(head)
