"""A long text that the user pastes is an object at once, and folds in later turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, image, lines, text, user
from context.playing import fresh_host
from context.restored import check_restored
from context.scenes import ask, bash, finish
from context.sent import Sent
from context.strategies import WINDOWS, Script, Step, sound_scripts
from context.test_properties import BOUNDED, LAYOUTS, play
from examples import examples
from foredeck.context.tools.listing import IN_VIEW, listed_objects
from foredeck.model.documents import UserDocument, user_object_id
from foredeck.model.identity import hash_text

TRACE = """Traceback (most recent call last):
  File "app/load_orders.py", line 12, in load_orders
    raise KeyError(name)
KeyError: 'warehouse_id'"""
LOG = f"What is wrong?\n{lines(450, 'logged')}\n{TRACE}\n{lines(450, 'retried')}\nLook at it."
ID = user_object_id(hash_text(LOG))
EAGER: dict[str, Any] = {"adaptive": {"patience": 2}, "rebase": {"carrying_factor": 0, "guard": 10}}
FOLDING = ["adaptive", "seed-window"]


def talk(host: Host, turns: int = 13) -> Sent:
    """A pasted log, and turns that use nothing of it."""
    ask(host, LOG)
    finish(host)
    for number in range(turns):
        ask(host, f"Something else, {number}.")
        bash(host, f"c{number}")
        finish(host)
    return ask(host, "And now?")


def test_it_is_an_object_at_once_and_goes_out_as_it_is(new_host: NewHost) -> None:
    host = new_host()
    sent = ask(host, LOG)
    assert sent.prompt == [user(LOG) | {"timestamp": sent.prompt[0]["timestamp"]}]
    entry = host.state.objects.index.entries[host.state.objects.index.by_object[ID]]
    assert host.state.chat.branch.sets.innermost(entry.ordinal) == "active"
    document = host.store.get(ID, UserDocument)
    assert (document.content, document.first_line) == (LOG, "What is wrong?")
    (row,) = listed_objects(host.state.objects, host.state.chat.branch)
    assert (row.ordinal, row.state, row.what) == (entry.ordinal, IN_VIEW, "you: What is wrong?")


@pytest.mark.parametrize("policy", FOLDING)
@pytest.mark.parametrize("layout", ["anchored", "pools"])
def test_it_folds_under_every_policy(new_host: NewHost, policy: str, layout: str) -> None:
    host = new_host(policy=policy, layout=layout, **EAGER)
    sent = talk(host)
    told = sent.text(0)
    told = told[told.rindex("What is wrong?") :]
    assert told.endswith("Look at it.")
    assert "chars folded>" in told
    assert "KeyError: 'warehouse_id' at app/load_orders.py:12" in told
    assert len(told) < len(LOG) / 4
    ordinal = host.state.objects.index.by_object[ID]
    assert host.state.chat.branch.sets.innermost(ordinal) == "inactive"


def test_what_is_left_of_it(new_host: NewHost, snapshot: Any) -> None:
    host = new_host(**EAGER)
    assert talk(host).text(0) == snapshot


@pytest.mark.parametrize(
    "given", [{"policy": "keep-all"}, {"pastes": {"objects": False}}, {"tools": {"context": False}}]
)
def test_it_stays_whole_where_nothing_is_to_fold(new_host: NewHost, given: Any) -> None:
    host = new_host(**EAGER, **given)
    assert talk(host).text(0) == LOG
    assert (ID in host.state.objects.index.by_object) == ("pastes" not in given)


def test_a_large_one_is_cut_under_its_own_handle(new_host: NewHost) -> None:
    host = new_host()
    host.set_window(20_000)
    huge = lines(9000, "logged")
    sent = ask(host, huge)
    name = f"@{host.state.objects.index.by_object[user_object_id(hash_text(huge))]}"
    assert f'activate "{name} chars ' in sent.text(0)


@LAYOUTS
@settings(BOUNDED, max_examples=examples(40))
@given(
    script=sound_scripts(),
    window=WINDOWS,
    policy=st.sampled_from(FOLDING),
    places=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    pasted=st.sampled_from([[text(LOG)], [text("See:"), text(LOG), image()], [text(LOG)] * 2]),
)
def test_pasted_anywhere_it_keeps_every_rule(
    layout: str, script: Script, window: int, policy: str, places: list[int], pasted: Any
) -> None:
    for place in places:
        script = [*script[:place], Step([assistant("So?"), user(pasted)]), *script[place:]]
    with fresh_host(layout=layout, policy=policy, **EAGER) as host:
        host.set_window(window)
        play(host, script, lambda host, _: check_restored(host))
