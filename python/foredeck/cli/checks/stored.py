"""What `foredeck doctor` finds in a sound store: how prompts are measured, models that have refused
one, and sessions that cannot be resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from foredeck.config import Config
from foredeck.finding import Finding, note, ok
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.documents import Document
from foredeck.model.records import SealsDocument, seals_id
from foredeck.store.opening import open_store
from foredeck.store.protocol import Batch, Store
from foredeck.store.registry import store_kind

SEALS = "sealed reasoning"
_NAMED = 5


def check_stored(config: Config, *, forget_refusals: bool) -> Iterator[Finding]:
    """What is to be said of a store. `forget_refusals`: have all models tried again.

    A node that does not run is not started for this.
    """
    kind = store_kind(config.store)
    if not kind.exists(config):
        yield _calibration([])
        return
    if not kind.is_awake(config) and not forget_refusals:
        return
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


def _calibration(lines: list[str]) -> Finding:
    """Characters per token, as each model's provider has counted."""
    text = f"no provider has counted yet: sizes are estimated, {CHARS_PER_TOKEN} characters a token"
    return ok("calibration", "\n".join(lines) or text)


def _seals(store: Store) -> Iterator[Finding]:
    if models := _models(store):
        names = ", ".join(models)
        text = f"turns of {names} fold only once they have ended, since folding earlier was refused"
        yield Finding(SEALS, "ok", text, "`foredeck doctor --forget-refusals` tries it again")


def _forget_refusals(store: Store) -> Iterator[Finding]:
    if not (models := _models(store)):
        yield ok(SEALS, "no model is known to have refused a prompt because of it")
        return
    taken: list[Document] = [
        SealsDocument(id=seals_id(name), model=name, binds=False).seal() for name in models
    ]
    store.commit(Batch(taken))
    yield ok(SEALS, f"forgotten, so that it is tried again: {', '.join(models)}")


def _models(store: Store) -> list[str]:
    heads = store.query("seals")
    return sorted(str(head.fields["model"]) for head in heads if head.fields.get("binds"))


def _cut_sessions(store: Store) -> Iterator[Finding]:
    """Sessions of which a call is stored, and the call before it is not."""
    parents = {
        head.id: (head.fields["session"], head.fields["parent"]) for head in store.query("call")
    }
    cut = sorted(
        {session for session, parent in parents.values() if parent and parent not in parents}
    )
    if cut:
        names = ", ".join(cut[:_NAMED]) + (f" and {len(cut) - _NAMED} more" if cut[_NAMED:] else "")
        yield note(
            "sessions",
            f"earlier calls are missing of {names}: Pi begins them anew",
            "`foredeck forget SESSION` deletes what is left of one.",
        )
