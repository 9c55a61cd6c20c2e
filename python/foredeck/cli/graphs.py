"""What the commands about notes share: the graph, kept in step with the store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from foredeck.cli.common import resolve_config
from foredeck.cli.progress import Progress
from foredeck.cli.stored import opened_store
from foredeck.config import Config
from foredeck.derived.follower import Follower
from foredeck.model.places import unlinked
from foredeck.model.quoting import name, one_line
from foredeck.names.finding import find_object, find_session
from foredeck.notes.graph import Graph, Node, Selection
from foredeck.notes.layer import LAYER, read_chats
from foredeck.store.protocol import Head, LocalStore


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """The store of a command and the graph of what is in it."""

    config: Config
    store: LocalStore
    graph: Graph


@contextmanager
def opened_graph(args: Namespace) -> Iterator[OpenGraph]:
    """The graph of the configured store, up to date."""
    config = resolve_config(args).config
    with opened_store(args) as store, Follower(store, LAYER, config.home) as follower:
        with Progress("reading notes, batch") as progress:
            follower.catch_up(progress.advance)
        with Progress("reading chats, batch") as progress:
            read_chats(follower, store, progress.advance)
        yield OpenGraph(config, store, Graph(follower.db))


def asked_id(opened: OpenGraph, text: str, session: str | None) -> str:
    """The id of the object that a user names: as other commands take it, or by a note's title.

    Raises `NotFound`, with the candidates, where none or several fit.
    """

    def titled(name: str) -> list[Head]:
        heads = opened.store.heads(node.id for node in opened.graph.named(name))
        return list(heads.values())

    known = None if session is None else find_session(opened.store, session)
    return find_object(opened.store, unlinked(text), known, titled).id


def selection_of(args: Namespace, tag: str | None = None) -> Selection:
    """What `add_selection` has read."""
    return Selection(frozenset(args.type), frozenset(args.relation), tag)


def shown(node: Node) -> str:
    """What a user would call an object."""
    return name(node.path) if node.path else f"{node.type} {one_line(node.title)}"
