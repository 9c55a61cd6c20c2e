"""Two processes that want to observe the same session at the same moment, again and again."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.observations.observers import AskedQuestion, ModelObserver, ModelReply
from foredeck.observations.reading import stored_notes
from foredeck.store.kind import open_store
from foredeck_bench.crash.homes import NODE_TIMEOUT_MS, prepared
from foredeck_bench.crash.workers import end
from foredeck_bench.observing.chat import CLOCK, RULES, answer_to, chat, count
from foredeck_bench.observing.worker import keeper_of, observed

PROCESSES = 2
PER_SESSION = 20
"""Rounds in one session: each adds a chunk to its chat."""
_ANSWER_S = 180.0
_THOUGHT_S = 0.002
"""How long the observer takes, so that the other one has time to come in between."""


def race_on(store: str, rounds: int, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Let two processes on a private store, `sqlite` or `xtdb`, observe each chunk of a chat at the
    same moment, and count.

    kept            observations in the store
    missing, twice  chunks that nobody has observed, or that were observed more than once
    at_once         times at which both were asking for the same session
    wins            how many each of them has written
    """
    with tempfile.TemporaryDirectory(prefix="foredeck-race-") as name:
        home = Path(name) / "home"
        with prepared(home, store):
            more = {"xtdb": {"timeout_ms": NODE_TIMEOUT_MS}} if store == "xtdb" else {}
            return _race({"home": home, "store": store, **more}, rounds, advance)


def _race(settings: Mapping[str, Any], rounds: int, advance: Callable[[], None]) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(PROCESSES)
    racers = []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=_racer, args=(dict(settings), start, theirs))
        process.start()
        racers.append((process, ours))
    pipes = [pipe for _, pipe in racers]
    at_once = 0
    wins = [0] * PROCESSES
    began = time.monotonic()
    try:
        for number in range(rounds):
            for pipe in pipes:
                pipe.send((f"race-{number // PER_SESSION}", number % PER_SESSION + 1))
            answers = [_answer(pipe) for pipe in pipes]
            spans = sorted(span for _, found in answers for span in found)
            at_once += any(b[0] < a[1] for a, b in pairwise(spans))
            wins = [total + won for total, (won, _) in zip(wins, answers, strict=True)]
            advance()
    finally:
        for process, pipe in racers:
            pipe.close()
            end(process)
    found = _counted(settings, rounds)
    found |= {"at_once": at_once, "wins": wins, "seconds": round(time.monotonic() - began, 1)}
    bad = ("missing", "twice", "at_once")
    return {"rounds": rounds, **found, "ok": not any(found[name] for name in bad)}


def _counted(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    kept = missing = twice = 0
    with closing(open_store(Config(**settings))) as store:
        for first in range(0, rounds, PER_SESSION):
            observations = stored_notes(store, [f"race-{first // PER_SESSION}"]).observations
            covered = [address for one in observations for address in one.document.covers]
            expected = {m.address for m in chat(min(PER_SESSION, rounds - first))}
            kept += len(observations)
            missing += len(expected - {*covered})
            twice += len(covered) - len({*covered})
            twice += sum(len(store.history(one.id)) - 1 for one in observations)
    return {"kept": kept, "missing": missing, "twice": twice}


def _answer(pipe: Connection) -> tuple[int, Sequence[tuple[float, float]]]:
    if not pipe.poll(_ANSWER_S):
        raise TimeoutError("a racing process does not answer")
    found: tuple[int, Sequence[tuple[float, float]]] = pipe.recv()
    return found


# One process


def _racer(settings: dict[str, Any], start: Any, pipe: Connection) -> None:
    with closing(open_store(Config(**settings))) as store:
        while True:
            try:
                session, chunks = pipe.recv()
            except EOFError:
                return
            keeper = keeper_of(store, session)
            spans: list[tuple[float, float]] = []

            async def think(question: AskedQuestion, spans: list[Any] = spans) -> ModelReply:
                began = time.monotonic()
                await asyncio.sleep(_THOUGHT_S)
                spans.append((began, time.monotonic()))
                return ModelReply(answer_to(question.text))

            observer = ModelObserver(think, count, CLOCK, RULES.chunk)
            messages = chat(chunks)
            start.wait(_ANSWER_S)
            won = 0
            while observed(keeper, messages, observer):
                won += 1
            pipe.send((won, spans))
