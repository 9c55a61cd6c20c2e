"""`foredeck search`: what was said, done and read, found by the words in it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from foredeck.cli.arguments import asked_folder, resolve_config
from foredeck.cli.output import Progress, answer, coloured, screen_width, shows_colours, typed
from foredeck.cli.stored import fetch_others, opened_store
from foredeck.config import Config
from foredeck.context.tools.found import HitNames, Style, describe_to_people
from foredeck.derived.follower import Follower
from foredeck.errors import CommandRefused, NotFound
from foredeck.lookup.reader import shown_memories
from foredeck.lookup.sessions import titles
from foredeck.model.figures import when
from foredeck.model.identity import TASK, ShortNames
from foredeck.names import find_session
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import SearchHit, SearchResult, search
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import folders_of_project, project_of
from foredeck.store.sessions import private_sessions
from foredeck.store.store import Store

_FACTORS = ("own", "lent", "dated", "weight", "recency", "held_back")


def run(args: Namespace) -> int:
    """`foredeck search`."""
    if not " ".join(args.query).strip():
        raise CommandRefused("search for what? Give words, names or paths.")
    config = resolve_config(args).config
    with opened_store(args) as store, Follower(store, "search", config.home) as follower:
        if follower.is_new:
            print("foredeck: building the search index, this once.", file=sys.stderr)
        with Progress("indexing, batch") as progress:
            fetch_others(store, progress)
            follower.catch_up(progress.advance)
        with follower.tables() as db:
            index = SearchIndex(db)
            result = search(
                store,
                index,
                " ".join(args.query),
                _filters(args, config, store, index),
                limit=args.limit,
                message_range=args.message_range,
                sessions_first=args.group == "session",
            )
            named = titles(store, [session for session, _ in result.groups() if session])
            result = replace(result, titles={**result.titles, **named})
            value = _as_json(result, explain=args.explain)
            return answer(args, value, _lines(result, HitNames(store, index.folders()), args))


def _filters(args: Namespace, config: Config, store: Store, index: SearchIndex) -> Filters:
    scope = args.scope or ("session" if args.session else "all")
    if scope == "session" and not args.session:
        raise CommandRefused("--scope session needs --session: which one?")
    sessions: tuple[str, ...] | None = None
    tasks: list[str] = []
    if args.session:
        sessions = (find_session(store, args.session),)
    elif scope == "project":
        folders = index.folders()
        place = str(asked_folder(args))
        filesystems = open_filesystems(config, place)
        here = set(folders_of_project(place, set(folders.values()), filesystems))
        sessions = tuple(session for session, folder in folders.items() if folder in here)
        project = project_of(place, filesystems).id
        tasks += (head.id for head in store.query("task", {"project": project}))
    task = _task(store, args.task) if args.task else None
    without = private_sessions(store, (sessions or ()) if args.session else ())
    memories = shown_memories(store, config, sessions if args.session else None)
    return Filters(
        sessions, args.type, args.tool, args.path, args.since, task, without, memories, tuple(tasks)
    )


def _task(store: Store, name: str) -> str:
    task = ShortNames(TASK, (head.id for head in store.query("task"))).find(name)
    if len(task) != 1:
        raise NotFound(f"{name!r} matches no task, or several; `foredeck tasks` lists them")
    return task[0]


def _as_json(found: SearchResult, *, explain: bool) -> dict[str, Any]:
    terms = {"looked_for": found.searched, "left_out": found.left_out} if explain else {}
    more = {name: [term.text for term in listed] for name, listed in terms.items()}
    hits = [_hit(hit, explain) for hit in found.hits]
    counts = {"total": found.total, "weak": found.weak}
    return {**counts, **more, "titles": dict(found.titles), "hits": hits}


def _hit(hit: SearchHit, explain: bool) -> dict[str, Any]:
    entry = hit.entry
    described: dict[str, Any] = {
        "session": hit.session,
        "message": entry.message,
        "object": hit.object,
        "type": entry.type,
        "role": entry.role or None,
        "time_ms": entry.time_ms,
        "score": round(hit.rank.score, 4),
        "snippet": hit.passage.text,
        "matches": [list(mark) for mark in hit.passage.marks],
        "place": hit.place.strip(),
        "also": hit.also,
        "path": entry.path,
        "task": entry.task,
    }
    if explain:
        words = {"words": list(hit.rank.words), "near": list(hit.rank.near)}
        described["why"] = words | {name: round(getattr(hit.rank, name), 4) for name in _FACTORS}
    if hit.around:
        described["around"] = [
            {
                "message": near.message,
                "type": near.type,
                "role": near.role or None,
                "time_ms": near.time_ms,
                "text": text,
                "before": near.id < entry.id,
            }
            for near, text in hit.around
        ]
    return described


def _lines(found: SearchResult, names: HitNames, args: Namespace) -> Iterator[str]:
    if not found.hits:
        yield "Nothing found. Try fewer words, other words, or a beginning with a star (retr*)."
        return
    if args.explain and found.left_out:
        yield f"left out as too common: {', '.join(term.text for term in found.left_out)}"
    style = Style()
    if shows_colours(sys.stdout):
        bold, dim, yellow = (partial(coloured, colour=c) for c in ("bold", "dim", "yellow"))
        style = Style(bold, dim, yellow, mark_width=0)
    explain = _explained if args.explain else (lambda _: ())
    text = describe_to_people(found, names.of, when, style, explain, screen_width())
    # Only the first line is foredeck's: commands in the texts that were found stay as they are.
    first, *hits = text.split("\n")
    yield "\n".join([typed(first), *hits])


def _explained(hit: SearchHit) -> Collection[str]:
    rank = hit.rank
    back = f" x {rank.held_back:.2f}" if rank.held_back < 1 else ""
    return [
        f"({rank.own:.2f} + {rank.lent:.2f} near + {rank.dated:.2f} dated) x {rank.weight:g}"
        f" x {rank.recency:.3f}{back} = {rank.score:.2f}"
    ]
