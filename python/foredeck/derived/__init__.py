"""Derived layers: made from the store, beside it, rebuildable."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # a layer brings the store with it
    from foredeck.derived.layer import Layer


class RegisteredLayer(NamedTuple):
    """A layer: `LAYER` in `module`; `summary` says what it is for."""

    module: str
    summary: str


LAYERS: Mapping[str, RegisteredLayer] = {
    "search": RegisteredLayer("foredeck.search.layer", "full-text search"),
    "notes": RegisteredLayer("foredeck.notes.layer", "the graph of notes and references"),
    "worklog": RegisteredLayer("foredeck.worklog", "what was done, and what worked"),
}


def load_layer(name: str) -> Layer:
    layer: Layer = import_module(LAYERS[name].module).LAYER
    return layer
