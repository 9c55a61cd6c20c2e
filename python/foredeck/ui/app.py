"""The inspector as a web application: its routes, and serving it on loopback."""

from __future__ import annotations

import gc
import json
import sys
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from foredeck.cli.arguments import resolve_config
from foredeck.cli.arguments.use import UI_PORT
from foredeck.cli.person import check_person
from foredeck.errors import ForedeckError, NotFound
from foredeck.home import command_name
from foredeck.lookup.reader import Reader
from foredeck.lookup.tracking import tracking
from foredeck.memory.describing import MemoryDesk, memory_desk
from foredeck.memory.entry import NoSuchEntry
from foredeck.store.kind import nothing_stored, store_kind
from foredeck.store.protocol import LocalStore
from foredeck.ui.access import LOOPBACK, REPORTS, OnlyThisUser, listening_on
from foredeck.ui.pages import STATIC, WebPage, link, respond
from foredeck.ui.views.objects import (
    blame_page,
    graph_page,
    notes_page,
    object_diff_page,
    object_page,
    objects_page,
)
from foredeck.ui.views.overview import follow_page, overview_page
from foredeck.ui.views.prompts import prompt_diff_page, prompt_page
from foredeck.ui.views.records import (
    change_memory,
    memory_entry_page,
    memory_page,
    observations_page,
    task_page,
    tasks_page,
)
from foredeck.ui.views.search import search_page
from foredeck.ui.views.sessions import session_page, sessions_page, trace_page, turns_page
from foredeck.ui.views.turns import TurnsListing

MOST_REPORTS = 100
MOST_FIELDS = 10_000
MOST_SAID = 200


class BadRequest(ForedeckError):
    """An address with a value that is none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for, and what its answer is read from."""

    request: Request
    reader: Reader
    store: LocalStore

    def part(self, name: str) -> Any:
        """A part of the path, by its name in the route."""
        return self.request.path_params[name]

    def value(self, name: str) -> str | None:
        """A query value."""
        return self.request.query_params.get(name)

    def text(self, name: str) -> str:
        """A query value; empty where there is none."""
        return self.request.query_params.get(name, "")

    def number(self, name: str) -> int | None:
        """A query value that is a whole number from 1 on. Raises `BadRequest`."""
        text = self.text(name)
        if not text:
            return None
        # `isdecimal` alone takes the digits of every script.
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise BadRequest(f"{name} must be a whole number of at least 1, not {text!r}.")
        return int(text)


def _turns(asked: Asked) -> WebPage:
    wanted = TurnsListing(asked.number("first"), asked.number("message"), asked.text("words"))
    return turns_page(asked.store, asked.part("session"), wanted)


def _objects(asked: Asked) -> WebPage:
    type, page = asked.value("type"), asked.number("page") or 1
    named = "file" if type is None else type
    return objects_page(asked.store, named, asked.text("contains"), page, asked.value("view"))


def _object(asked: Asked) -> WebPage:
    with asked.reader.graph(asked.store) as (graph, _):
        version, part = asked.number("version"), asked.text("part")
        now = tracking(asked.reader.config, asked.store)
        return object_page(asked.store, graph, asked.part("object"), version, part, now)


def _graph(asked: Asked) -> WebPage:
    depth = min(4, asked.number("depth") or 1)
    with asked.reader.graph(asked.store) as (graph, note):
        return graph_page(asked.store, graph, asked.part("object"), depth, note)


def _notes(asked: Asked) -> WebPage:
    with asked.reader.graph(asked.store) as (graph, note):
        return notes_page(graph, asked.reader.config, asked.value("tag"), note)


def _desk(store: LocalStore, reader: Reader) -> MemoryDesk:
    return memory_desk(store, reader.config, str(Path.home()))


def _memory(asked: Asked) -> WebPage:
    desk, edits = _desk(asked.store, asked.reader), asked.reader.edits
    place, contains, tag = asked.value("place"), asked.text("contains"), asked.value("tag")
    page = memory_page(desk, place, contains, tag, edits=edits)
    return replace(page, data={**page.data, "said": asked.text("said")[:MOST_SAID]})


def _memory_entry(asked: Asked) -> WebPage:
    desk = _desk(asked.store, asked.reader)
    return memory_entry_page(desk, asked.part("entry"), edits=asked.reader.edits)


def _search(asked: Asked) -> WebPage:
    query, type, session = asked.text("q").strip(), asked.value("type"), asked.value("session")
    config = asked.reader.config
    with asked.reader.search(asked.store) as (index, note):
        return search_page(asked.store, index, config, query, type, session, note)


_SESSION, _OBJECT = "/sessions/{session}", "/objects/{object}"
_VIEWS: dict[str, Callable[[Asked], WebPage]] = {
    "/overview": lambda a: overview_page(a.store, a.reader.config),
    "/follow": lambda a: follow_page(a.store),
    "/sessions": lambda a: sessions_page(
        a.store, a.value("folder"), a.value("agent"), a.number("page") or 1
    ),
    _SESSION: lambda a: session_page(a.store, a.part("session"), a.number("first")),
    f"{_SESSION}/calls/{{call:int}}": lambda a: prompt_page(
        a.store, a.part("session"), a.part("call")
    ),
    f"{_SESSION}/calls/{{call:int}}/changes": lambda a: prompt_diff_page(
        a.store, a.part("session"), a.part("call"), a.number("base")
    ),
    f"{_SESSION}/turns": _turns,
    f"{_SESSION}/trace": lambda a: trace_page(a.store, a.part("session"), a.text("text")),
    f"{_SESSION}/observations": lambda a: observations_page(a.store, a.part("session")),
    "/objects": _objects,
    _OBJECT: _object,
    f"{_OBJECT}/changes": lambda a: object_diff_page(
        a.store, a.part("object"), a.number("old"), a.number("new")
    ),
    f"{_OBJECT}/blame": lambda a: blame_page(a.store, a.part("object")),
    f"{_OBJECT}/graph": _graph,
    "/notes": _notes,
    "/tasks": lambda a: tasks_page(a.store, a.reader.config, a.value("project")),
    "/tasks/{task}": lambda a: task_page(a.store, a.part("task")),
    "/memory": _memory,
    "/memory/{entry}": _memory_entry,
    "/search": _search,
}


def run(args: Namespace) -> int:
    """`foredeck ui`: print the address, open it, and answer until Ctrl-C or SIGTERM."""
    config = resolve_config(args).config
    if args.edit:
        check_person(config.home, "Changing memory")
    kind = store_kind(config.store)
    if not kind.exists(config):
        raise NotFound(nothing_stored(config))
    reader = Reader(config, edits=args.edit)
    collect_seldom()
    with listening_on([UI_PORT, 0] if args.port is None else [args.port]) as listener:
        number = listener.getsockname()[1]
        app = OnlyThisUser(make_app(reader), number)
        address = f"http://{LOOPBACK}:{number}/{'follow' if args.follow else ''}?token={app.token}"
        print(address, flush=True)
        if args.port is None and number != UI_PORT:
            print(
                f"foredeck: port {UI_PORT} is taken by another program. Open no address of that "
                "port while this one runs: the other program would be sent this one's cookie.",
                file=sys.stderr,
            )
        # The first page would wait for what the layers lack, on a large store for seconds.
        threading.Thread(target=_warm, args=(reader,), name="warm", daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
        )
        with _redirecting_page(config.home, address) if not args.no_open else nullcontext() as page:
            if page is not None:
                webbrowser.open(page.as_uri())
            server.run(sockets=[listener])
    return 0


def collect_seldom() -> None:
    """Look for garbage once half a million things have been made, and not after every 700."""
    # A page over a long session makes that many, all of which it needs, and looking took a fourth
    # of its time.
    gc.freeze()
    gc.set_threshold(500_000, 5, 5)


@contextmanager
def _redirecting_page(home: Path, address: str) -> Iterator[Path]:
    """A page that leads to the address, for this user alone. It goes with the server."""
    # Everybody on this machine can read the arguments that a browser is started with. A killed
    # server leaves the file, with a token that is not valid any more.
    file = home / "ui.html"
    # Made anew, and closed to others before the token is in it.
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    leads = f'<meta http-equiv="refresh" content="0;url={address}">'
    file.write_text(
        f'<!doctype html><meta charset="utf-8">{leads}<a href="{address}">foredeck</a>\n'
    )
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _warm(reader: Reader) -> None:
    try:
        reader.warm()
    except ForedeckError as error:
        print(f"foredeck: {error}", file=sys.stderr)


def make_app(reader: Reader) -> Starlette:
    """The application. Its pages read; only what is posted changes the store, with `edits`."""
    return Starlette(
        routes=_routes(reader, _PolicyReports()), middleware=[Middleware(_AsItWasSent)]
    )


def _routes(reader: Reader, reports: _PolicyReports) -> list[Route | Mount]:
    routes: list[Route | Mount] = [
        Route("/", lambda _: RedirectResponse("/overview", 303)),
        Route(REPORTS, reports.take, methods=["POST"]),
        Route(f"{REPORTS}.json", reports.show),
        Route("/memory", _changing(reader), methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    for path, view in _VIEWS.items():
        # The twin first: `{session}` would take `ID.json` for an id.
        routes += [
            Route(f"{path}.json", _answering(view, reader)),
            Route(path, _answering(view, reader)),
        ]
    return [*routes, Route("/{path:path}", _unknown)]


def _answering(view: Callable[[Asked], WebPage], reader: Reader) -> Callable[[Request], Response]:
    """A view as a route."""

    # Not async: Starlette runs it in a thread, where it may read files.
    def answer(request: Request) -> Response:
        # The path is routed as it was sent, so its names are still quoted.
        for name, value in request.path_params.items():
            request.path_params[name] = unquote(value) if isinstance(value, str) else value
        try:
            given = [*request.path_params.values(), *request.query_params.values()]
            if any("\0" in str(value) for value in given):
                raise BadRequest("A name holds no null character.")
            with reader.store() as store:
                page = view(Asked(request, reader, store))
        except (NotFound, NoSuchEntry) as error:
            page = _refusal("Not found", str(error), 404)
        except BadRequest as error:
            page = _refusal("Not understood", str(error), 400)
        except ForedeckError as error:
            page = _refusal("Not to be read", str(error), 503)
        return respond(request, page)

    return answer


def _changing(reader: Reader) -> Callable[[Request], Awaitable[Response]]:
    """What the user does to memory. The browser is theirs: `OnlyThisUser` has seen to that."""

    async def change(request: Request) -> Response:
        body = await request.body()
        try:
            form = parse_qs(body.decode(errors="replace"), max_num_fields=MOST_FIELDS)
        except ValueError:
            said = f"At most {MOST_FIELDS:,} entries are changed at once."
            return respond(request, _refusal("Not done", said, 400))
        act, ids = form.get("act", [""])[0], form.get("id", [])
        # The store may have to wait for another writer; other pages are answered meanwhile.
        return await run_in_threadpool(_change, request, reader, act, ids)

    return change


def _change(request: Request, reader: Reader, act: str, ids: list[str]) -> Response:
    if not reader.edits:
        said = f"These pages only read: start `{command_name()} ui --edit` to change memory here."
        return respond(request, _refusal("Not allowed", said, 403))
    try:
        with reader.store() as store:
            count, refused, gone = change_memory(_desk(store, reader), act, ids)
    except ForedeckError as error:
        return respond(request, _refusal("Not done", str(error), 400))
    if refused:
        others = " ".join(dict.fromkeys(refused))
        left = "".join(f" Removed to make room: {line}" for line in gone)
        said = f"{act}: done to {count}, not to {len(refused)}. {others}{left}"
        return respond(request, _refusal("Not all was done", said, 400))
    said = f"{act}: {count}" if count else "Nothing was selected."
    said += "".join(f"; removed to make room: {line}" for line in gone)
    return RedirectResponse(link("memory", said=said), 303)


def _unknown(request: Request) -> Response:
    return respond(request, _refusal("Not found", f"There is no page {request.url.path}.", 404))


def _refusal(title: str, text: str, status: int) -> WebPage:
    return WebPage("refusal.html", title, {"error": text}, status=status)


class _AsItWasSent:
    """Middleware: routes see the path as it was sent, so that a slash within a name is none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("ascii")}
        await self._app(scope, receive, send)


@dataclass(slots=True)
class _PolicyReports:
    """What browsers reported of the content policy: something shown wanted to run or be fetched."""

    taken: list[str] = field(default_factory=list)

    async def take(self, request: Request) -> Response:
        """Keep a report, within bounds."""
        body = await request.body()
        # A page that breaks the policy again and again must not fill the memory.
        if len(self.taken) < MOST_REPORTS:
            self.taken.append(body[:2_000].decode(errors="replace"))
        return Response(status_code=204)

    async def show(self, _: Request) -> Response:
        """All of them."""
        return Response(json.dumps({"reports": self.taken}), media_type="application/json")
