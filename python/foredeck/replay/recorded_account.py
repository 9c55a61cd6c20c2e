"""The account of a recorded session, which is replayed for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.calibration import calibrate
from foredeck.accounting.plain import plain_prompts
from foredeck.accounting.shapes import Shapes
from foredeck.accounting.stored import StoredCalls
from foredeck.histories.recordings import load_recording
from foredeck.hosts.pi.messages import to_usage
from foredeck.hosts.pi.transcripts import Transcript
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.opening import open_store


def recorded_account(path: Path, options: ReplayOptions, advance: Callable[[], None]) -> Account:
    """The account of a session file, replayed with `options` on a private store.

    It is compared with plain Pi as it was recorded, compactions included, and the provider's
    figures are those of the recording. `advance` is called after every call. Raises
    `TranscriptError`, `PriceError` or `ConfigError`.
    """
    transcript = load_recording(path)
    rate = calibrate(transcript)
    head = (rate.head_tokens, rate.head_tokens + options.definition_tokens)
    with tempfile.TemporaryDirectory(prefix="foredeck-cost-", ignore_cleanup_errors=True) as name:
        replay_into(Path(name), transcript, options, advance)
        with closing(open_store(options.config(Path(name)))) as store:
            calls = [
                replace(stored, usage=to_usage(transcript.messages[call.seen].message.get("usage")))
                for stored, call in zip(
                    StoredCalls(store, transcript.id), transcript.calls, strict=True
                )
            ]
        method = AccountingMethod(options.cache, options.ttl_s, rate.chars_per_token, head, "plain")
        shapes = Shapes()
        prompts = plain_prompts(transcript, transcript.compactions)
        return account_of(calls, method, map(shapes.of, prompts))


def replay_into(
    home: Path, transcript: Transcript, options: ReplayOptions, advance: Callable[[], None]
) -> None:
    """Replay a recorded session on the store in `home`; `advance` is called after every call."""
    with closing(ReplayedSession(home, transcript, options)) as session:
        for call in transcript.calls:
            session.call(call)
            advance()
