"""Somebody who commits while something else goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from foredeck.store.protocol import Copyable, Token
from patience import ENOUGH_S

from .documents import batch, note


@contextmanager
def being_written(
    open_one: Callable[[], Copyable], more: int, pause_s: float = 0
) -> Iterator[tuple[list[Token], Callable[[], None]]]:
    """Until the block ends: the acknowledged tokens, and a wait for `more` of them."""
    tokens: list[Token] = []
    stopping, wrote = threading.Event(), threading.Condition()

    def write() -> None:
        with closing(open_one()) as store:
            while not stopping.wait(pause_s):
                n = len(tokens)
                token = store.commit(batch(note(f"w{n % 7}", f"{n} " * (n % 3) * 700)))
                with wrote:
                    tokens.append(token)
                    wrote.notify_all()

    def wait() -> None:
        with wrote:
            goal = len(tokens) + more
            assert wrote.wait_for(lambda: len(tokens) >= goal or not thread.is_alive(), ENOUGH_S)
        assert thread.is_alive()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield tokens, wait
    finally:
        stopping.set()
        thread.join()
