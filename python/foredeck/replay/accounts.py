"""Accounts of a stored session, and of a recorded file that is replayed for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.calibration import calibrate
from foredeck.accounting.clerk import account_of
from foredeck.accounting.comparison import DEFINITION_TOKENS
from foredeck.accounting.plain import plain_prompts
from foredeck.accounting.shapes import Shapes
from foredeck.accounting.stored import StoredCall, stored_calls
from foredeck.hosts.pi.messages import to_usage
from foredeck.hosts.pi.transcripts import Transcript, load_transcript
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.opening import open_store
from foredeck.store.protocol import Store

Step = Callable[[], None]


def stored_account(store: Store, session: str, method: AccountingMethod, step: Step) -> Account:
    """The account of a stored session; `step` is called once for each call."""
    calls: list[StoredCall] = []
    for call in stored_calls(store, session):
        calls.append(call)
        step()
    return account_of(calls, method)


def recorded_account(path: Path, options: ReplayOptions, step: Step) -> Account:
    """The account of a recorded file: replayed by `options` on a private store.

    Plain Pi is as it was recorded, its compactions included, and so are the provider's figures.
    Raises `TranscriptError`, `PriceError` or `ConfigError`.
    """
    transcript = load_transcript(path)
    rate = calibrate(transcript)
    head = (rate.head_tokens, rate.head_tokens + DEFINITION_TOKENS)
    with tempfile.TemporaryDirectory(prefix="foredeck-cost-", ignore_cleanup_errors=True) as name:
        _replay(Path(name), transcript, options, step)
        with closing(open_store(options.config(Path(name)))) as store:
            calls = [
                replace(stored, usage=to_usage(transcript.messages[call.seen].message.get("usage")))
                for stored, call in zip(
                    stored_calls(store, transcript.id), transcript.calls, strict=True
                )
            ]
        method = AccountingMethod(options.cache, options.ttl_s, rate.chars_per_token, head, "plain")
        shapes = Shapes()
        prompts = plain_prompts(transcript, transcript.compactions)
        return account_of(calls, method, map(shapes.of, prompts))


def _replay(home: Path, transcript: Transcript, options: ReplayOptions, step: Step) -> None:
    with closing(ReplayedSession(home, transcript, options)) as host:
        for call in transcript.calls:
            host.call(call)
            step()
