"""A session with its prompts, as sent or, if foredeck did not see it, replayed."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress
from foredeck.cli.person import named_or_chosen
from foredeck.cli.stored import opened_store, store_if_any
from foredeck.errors import NotFound
from foredeck.lookup.sessions import collect_seldom
from foredeck.model.documents import progress_in, session_object_id
from foredeck.names import find_session
from foredeck.store.store import Store
from foredeck_agents.histories.recordings import load_recording
from foredeck_agents.histories.records import Transcript

if TYPE_CHECKING:  # loads the engine, which a stored session has no use for
    # Loads what replays, which a stored session has no use for.
    from foredeck_lab.replay.options import ReplayOptions
    from foredeck_lab.replay.replayed_session import Replayed


@dataclass(frozen=True, slots=True)
class NamedSession:
    """A session; `store` is None for a file, `recording` is what must be replayed."""

    session: str
    store: Store | None
    recording: Transcript | None

    @property
    def name(self) -> str:
        if self.store is None and self.recording is not None:
            return self.recording.path.name
        return self.session


@contextmanager
def named_session(args: Namespace) -> Iterator[NamedSession]:
    """The session of `args.session`. Raises `NotFound` without calls or file."""
    collect_seldom()
    args.session = named_or_chosen(args, args.session)
    path = Path(args.session)
    if path.suffix == ".jsonl" and not path.exists():
        raise NotFound(f"{path} does not exist.")
    # Without a store a file will do: nothing is created for it.
    with (store_if_any if path.is_file() else opened_store)(args) as store:
        try:
            session = None if store is None else find_session(store, args.session)
        except NotFound:
            if not path.is_file():
                raise
            session = None
        if store is None or session is None:
            transcript = _loaded(path)
            yield NamedSession(transcript.id, None, transcript)
            return
        has_calls = bool(store.query("call", {"session": session}, limit=1))
        yield NamedSession(session, store, None if has_calls else _recording(store, session))


@contextmanager
def with_prompts(named: NamedSession, args: Namespace) -> Iterator[Store]:
    """The store with the session's prompts, replayed if need be."""
    if named.recording is None:
        assert named.store is not None  # only what is stored has no recording
        yield named.store
        return
    with replayed_for(args, named.recording) as (done, _):
        yield done.store


@contextmanager
def replayed_for(
    args: Namespace, recording: Transcript
) -> Iterator[tuple[Replayed, ReplayOptions]]:
    """A replay with progress, and its options."""
    # Loads the engine, which a stored session has no use for.
    from foredeck_lab.replay.replayed_session import replayed

    options = _replay_options(args)
    with ExitStack() as stack:
        with Progress("replaying call", len(recording.calls)) as progress:
            made = replayed(recording, options, lambda *_: progress.advance())
            done = stack.enter_context(made)
        yield done, options


def _replay_options(args: Namespace) -> ReplayOptions:
    # Loads what replays, which a stored session has no use for.
    from foredeck_lab.replay.options import ReplayOptions

    config = resolve_config(args).config
    default = ReplayOptions()
    return ReplayOptions(
        layout=config.layout,
        policy=config.policy,
        settings=tuple(args.set),
        ttl_s=getattr(args, "ttl", None) or default.ttl_s,
        cache=getattr(args, "cache", None) or default.cache,
        prices=getattr(args, "prices", default.prices),
    )


def _recording(store: Store, session: str) -> Transcript:
    head = store.head(session_object_id(session))
    progress = None if head is None else progress_in(head.fields)
    if progress is None:
        raise NotFound(f"session {session} has made no call yet.")
    path = Path(progress.file)
    if not path.is_file():
        raise NotFound(
            f"foredeck did not see the prompts of session {session}, and cannot replay it: "
            f"{path}, the file it was read from, no longer exists. `foredeck cat chat:{session}` "
            "prints what was said."
        )
    print(f"foredeck did not record this session: this is a replay of {path}", file=sys.stderr)
    return _loaded(path, session)


def _loaded(path: Path, session: str | None = None) -> Transcript:
    transcript = load_recording(path, session, branches=True)
    if not transcript.calls:
        raise NotFound(f"{path} has no answer of a model in it")
    return transcript
