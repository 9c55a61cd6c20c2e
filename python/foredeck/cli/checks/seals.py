"""Models that have refused a prompt because of what had changed before their sealed reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from foredeck.finding import Finding
from foredeck.model.documents import Document
from foredeck.model.records import SealsDocument, seals_id
from foredeck.store.opening import open_store
from foredeck.store.protocol import Batch
from foredeck.store.registry import store_kind

if TYPE_CHECKING:
    from foredeck.config import Config

NAME = "sealed reasoning"


def check_seals(config: Config) -> Iterator[Finding]:
    """What a sound store has of them; nothing where there are none."""
    kind = store_kind(config.store)
    if not kind.exists(config) or not kind.is_awake(config):
        return
    if models := _models(config):
        names = ", ".join(models)
        text = f"turns of {names} fold only once they have ended, since folding earlier was refused"
        yield Finding(NAME, "ok", text, "`foredeck doctor --forget-refusals` has it tried again")


def forget_refusals(config: Config) -> Iterator[Finding]:
    """Have all models tried again; says which."""
    if not store_kind(config.store).exists(config) or not (models := _models(config)):
        yield Finding(NAME, "ok", "no model is known to have refused a prompt because of it")
        return
    taken: list[Document] = [
        SealsDocument(id=seals_id(name), model=name, binds=False).seal() for name in models
    ]
    with closing(open_store(config)) as store:
        store.commit(Batch(taken))
    yield Finding(NAME, "ok", f"forgotten, so that it is tried again: {', '.join(models)}")


def _models(config: Config) -> list[str]:
    with closing(open_store(config, lazy=True)) as store:
        heads = store.query("seals")
    return sorted(str(head.fields["model"]) for head in heads if head.fields.get("binds"))
