"""An old version goes by its pin: what this session saw, verified, and nothing else."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import lines
from context.scenes import ask
from context.test_tools import said
from context.working import Work
from foredeck.model.documents import FileDocument
from foredeck.model.records import call_id
from foredeck.store.protocol import Batch, Origin, Token, order_of

OWN, FOREIGN, LATER = lines(40, "own"), lines(40, "foreign"), lines(40, "later")


@pytest.fixture
def work(work: Work) -> Work:
    """An agent that has written a.py (@3) before its second call, and again before its third."""
    ask(work.host)
    work.write("a.py", OWN)
    work.write("a.py", LATER)
    return work


def deliver_late(host: Host, text: str) -> None:
    """Another machine's version of a.py arrives now, made just before the second call here."""
    store, file = host.store, host.state.objects.index.entries[3].object
    own, record = store.history(file)[0], store.head(call_id(host.session, 2))
    document = store.get(file, FileDocument)
    number = own.token.rpartition("-")[2]
    late = Origin(Token(f"~late-{number}"), own.time_ms)
    assert order_of(Origin(own.token, own.time_ms)) < order_of(late)
    assert order_of(late) < order_of(Origin(record.token, record.time_ms))
    document.content = text
    store.commit(Batch(puts=[document.seal()]), origin=late)


def test_as_of_a_call_is_what_the_session_had_seen_by_then(work: Work) -> None:
    deliver_late(work.host, FOREIGN)
    assert said(work.host, "activate", "@3 call 2") == OWN
    assert said(work.host, "activate", "@3 v1") == OWN
