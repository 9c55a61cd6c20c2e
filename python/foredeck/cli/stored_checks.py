"""What `foredeck doctor` says of what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from foredeck.config import Config
from foredeck.finding import Finding, note, ok
from foredeck.lookup.objects import tracking
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document
from foredeck.model.figures import counted, some_of
from foredeck.model.records import ReasoningDocument, reasoning_id
from foredeck.model.sources import path_of
from foredeck.store.place import open_store, store_place
from foredeck.store.protocol import Batch
from foredeck.store.store import Store

SEALS = "sealed reasoning"
_NAMED = 5


def check_stored(config: Config, *, forget_refusals: bool) -> Iterator[Finding]:
    """What is to be said of a store; `forget_refusals`: models are tried again."""
    place = store_place(config)
    if not place.exists():
        yield _calibration([])
        return
    if not place.is_awake() and not forget_refusals:
        return  # a node that does not run is not started for this
    with closing(open_store(config, lazy=True)) as store:
        yield _calibration(
            sorted(
                f"{fields['model']}: {fields['chars_per_token']} characters a token "
                f"({len(fields['points'])} calls)"
                for fields in (head.fields for head in store.query("calibration"))
            )
        )
        yield from (_forget_refusals if forget_refusals else _seals)(store)
        yield from _cut_sessions(store)
        yield from _orphaned(config, store)


def _calibration(lines: list[str]) -> Finding:
    text = f"no provider has counted yet: sizes are estimated, {CHARS_PER_TOKEN} characters a token"
    return ok("calibration", "\n".join(lines) or text)


def _seals(store: Store) -> Iterator[Finding]:
    if models := _models(store):
        names = ", ".join(models)
        text = f"turns of {names} fold only once they have ended: folding earlier failed"
        yield Finding(SEALS, "ok", text, "`foredeck doctor --forget-refusals` tries it again")


def _forget_refusals(store: Store) -> Iterator[Finding]:
    if not (models := _models(store)):
        yield ok(SEALS, "no model is known to have refused a prompt because of it")
        return
    documents: list[Document] = [
        ReasoningDocument(id=reasoning_id(name), model=name, binds=False).seal() for name in models
    ]
    store.commit(Batch(documents))
    yield ok(SEALS, f"forgotten, so that it is tried again: {', '.join(models)}")


def _models(store: Store) -> list[str]:
    heads = store.query("reasoning")
    return sorted(head.view(ReasoningDocument).model for head in heads if head.fields.get("binds"))


def _cut_sessions(store: Store) -> Iterator[Finding]:
    """Sessions with a call stored, but not the call before it."""
    calls = (CallRecord(head.fields) for head in store.query("call"))
    parents = {call.id: (call.session, call.parent) for call in calls}
    cut = sorted(
        {session for session, parent in parents.values() if parent and parent not in parents}
    )
    if cut:
        yield note(
            "sessions",
            f"earlier calls are missing of {some_of(cut, _NAMED)}: Pi begins them anew",
            "`foredeck forget SESSION` deletes what is left of one.",
        )


def _orphaned(config: Config, store: Store) -> Iterator[Finding]:
    """Files that an agent has read and that are out of reach."""
    now, heads = tracking(config, store), store.query("file")
    files = (head for head in heads if head.fields.get("state") != "listed" and now.is_ours(head))
    gone = sorted(path_of(head.fields) or "" for head in files if now.state(head) == "orphaned")
    if gone:
        where = "they were" if len(gone) > 1 else "it was"
        yield Finding(
            "files",
            "ok",
            f"{counted(len(gone), 'file')} cannot be looked at where {where} (the last versions "
            f"stay): {some_of(gone, _NAMED)}",
            "Once the file system or folder is back, they are followed again.",
        )
