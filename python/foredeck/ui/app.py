"""The inspector as a web application: its routes, and serving it on loopback."""

from __future__ import annotations

import gc
import json
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
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

from foredeck.config import Config
from foredeck.errors import ForedeckError, NotFound
from foredeck.home import command_name
from foredeck.lookup.reader import Reader
from foredeck.memory.entry import NoSuchEntry
from foredeck.store.kind import nothing_stored, store_kind
from foredeck.store.protocol import LocalStore
from foredeck.ui.access import LOOPBACK, REPORTS, OnlyThisUser, listening_on
from foredeck.ui.command import PORT
from foredeck.ui.pages import STATIC, WebPage, link, respond
from foredeck.ui.views.memory import change_memory, memory_desk, memory_entry_page, memory_page
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
from foredeck.ui.views.search import search_page
from foredeck.ui.views.session import observations_page, session_page, trace_page
from foredeck.ui.views.sessions import sessions_page
from foredeck.ui.views.tasks import task_page, tasks_page
from foredeck.ui.views.turns import TurnsListing, turns_page

MOST_REPORTS = 100
MOST_FIELDS = 10_000
MOST_SAID = 200
View = Callable[[Request, Reader, LocalStore], WebPage]


class BadRequest(ForedeckError):
    """An address with a value that is none."""


def serve(
    config: Config, port: int | None, *, opens: bool, edits: bool, follows: bool = False
) -> int:
    """Print the address, open it, and answer until Ctrl-C or SIGTERM. `follows`: the address is
    that of the session at work.

    Raises `NotFound` where nothing is stored, `PortTaken` for a `port` that is asked for.
    """
    kind = store_kind(config.store)
    if not kind.exists(config):
        raise NotFound(nothing_stored(config))
    reader = Reader(config, edits=edits)
    collect_seldom()
    # Earlier versions of foredeck kept one token for all runs.
    (config.home / "ui-token").unlink(missing_ok=True)
    with listening_on([PORT, 0] if port is None else [port]) as listener:
        number = listener.getsockname()[1]
        app = OnlyThisUser(make_app(reader), number)
        address = f"http://{LOOPBACK}:{number}/{'follow' if follows else ''}?token={app.token}"
        print(address, flush=True)
        if port is None and number != PORT:
            print(
                f"foredeck: port {PORT} is taken by another program. Open no address of that port "
                "while this one runs: the other program would be sent this one's cookie.",
                file=sys.stderr,
            )
        # The first page would wait for what the layers lack, on a large store for seconds.
        threading.Thread(target=_warm, args=(reader,), name="warm", daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
        )
        with _door(config.home, address) if opens else nullcontext() as door:
            if door is not None:
                webbrowser.open(door.as_uri())
            server.run(sockets=[listener])
    return 0


def collect_seldom() -> None:
    """Look for garbage once half a million things have been made, and not after every 700."""
    # A page over a long session makes that many, all of which it needs, and looking took a fourth
    # of its time.
    gc.freeze()
    gc.set_threshold(500_000, 5, 5)


@contextmanager
def _door(home: Path, address: str) -> Iterator[Path]:
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
    views = {
        "/overview": _overview,
        "/follow": _follow,
        "/sessions": _sessions,
        "/sessions/{session}": _session,
        "/sessions/{session}/calls/{call:int}": _prompt,
        "/sessions/{session}/calls/{call:int}/changes": _prompt_diff,
        "/sessions/{session}/turns": _turns,
        "/sessions/{session}/trace": _trace,
        "/sessions/{session}/observations": _observations,
        "/objects": _objects,
        "/objects/{object}": _object,
        "/objects/{object}/changes": _object_diff,
        "/objects/{object}/blame": _blame,
        "/objects/{object}/graph": _graph,
        "/notes": _notes,
        "/tasks": _tasks,
        "/tasks/{task}": _task,
        "/memory": _memory,
        "/memory/{entry}": _memory_entry,
        "/search": _search,
    }
    routes: list[Route | Mount] = [
        Route("/", lambda _: RedirectResponse("/overview", 303)),
        Route(REPORTS, reports.take, methods=["POST"]),
        Route(f"{REPORTS}.json", reports.show),
        Route("/memory", _changing(reader), methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    for path, view in views.items():
        # The twin first: `{session}` would take `ID.json` for an id.
        routes += [
            Route(f"{path}.json", _answering(view, reader)),
            Route(path, _answering(view, reader)),
        ]
    return [*routes, Route("/{path:path}", _unknown)]


def _answering(view: View, reader: Reader) -> Callable[[Request], Response]:
    """A view as a route."""

    # Not async: Starlette runs it in a thread, where it may read files.
    def answer(request: Request) -> Response:
        # The path is routed as it was sent, so its names are still quoted.
        for name, value in request.path_params.items():
            request.path_params[name] = unquote(value) if isinstance(value, str) else value
        try:
            _check_names(request)
            with reader.store() as store:
                page = view(request, reader, store)
        except (NotFound, NoSuchEntry) as error:
            page = _refusal("Not found", str(error), 404)
        except BadRequest as error:
            page = _refusal("Not understood", str(error), 400)
        except ForedeckError as error:
            page = _refusal("Not to be read", str(error), 503)
        return respond(request, page)

    return answer


def _check_names(request: Request) -> None:
    """Raises `BadRequest` for what no name can hold."""
    given = [*request.path_params.values(), *request.query_params.values()]
    if any("\0" in str(value) for value in given):
        raise BadRequest("A name holds no null character.")


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
            count, refused = change_memory(memory_desk(store, reader.config), act, ids)
    except ForedeckError as error:
        return respond(request, _refusal("Not done", str(error), 400))
    if refused:
        others = " ".join(dict.fromkeys(refused))
        said = f"{act}: done to {count}, not to {len(refused)}. {others}"
        return respond(request, _refusal("Not all was done", said, 400))
    said = f"{act}: {count}" if count else "Nothing was selected."
    return RedirectResponse(link("memory", said=said), 303)


def _unknown(request: Request) -> Response:
    return respond(request, _refusal("Not found", f"There is no page {request.url.path}.", 404))


def _refusal(title: str, text: str, status: int) -> WebPage:
    return WebPage("refusal.html", title, {"error": text}, status=status)


def _number(request: Request, name: str) -> int | None:
    """A query value that is a whole number from 1 on. Raises `BadRequest`."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return None
    # `isdecimal` alone takes the digits of every script.
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise BadRequest(f"{name} must be a whole number of at least 1, not {text!r}.")
    return int(text)


def _overview(_: Request, reader: Reader, store: LocalStore) -> WebPage:
    return overview_page(store, reader.config)


def _follow(_: Request, __: Reader, store: LocalStore) -> WebPage:
    return follow_page(store)


def _sessions(request: Request, _: Reader, store: LocalStore) -> WebPage:
    asked = request.query_params
    page = _number(request, "page") or 1
    return sessions_page(store, asked.get("folder"), asked.get("agent"), page)


def _session(request: Request, _: Reader, store: LocalStore) -> WebPage:
    return session_page(store, request.path_params["session"], _number(request, "first"))


def _turns(request: Request, _: Reader, store: LocalStore) -> WebPage:
    words = request.query_params.get("words", "")
    asked = TurnsListing(_number(request, "first"), _number(request, "message"), words)
    return turns_page(store, request.path_params["session"], asked)


def _prompt(request: Request, _: Reader, store: LocalStore) -> WebPage:
    at = request.path_params
    return prompt_page(store, at["session"], at["call"])


def _prompt_diff(request: Request, _: Reader, store: LocalStore) -> WebPage:
    at = request.path_params
    return prompt_diff_page(store, at["session"], at["call"], _number(request, "base"))


def _trace(request: Request, _: Reader, store: LocalStore) -> WebPage:
    text = request.query_params.get("text", "")
    return trace_page(store, request.path_params["session"], text)


def _objects(request: Request, _: Reader, store: LocalStore) -> WebPage:
    asked = request.query_params
    page = _number(request, "page") or 1
    type, contains = asked.get("type", "file"), asked.get("contains", "")
    return objects_page(store, type, contains, page, asked.get("view"))


def _object(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    with reader.graph(store) as (graph, _):
        name = request.path_params["object"]
        part = request.query_params.get("part", "")
        return object_page(store, graph, name, _number(request, "version"), part)


def _object_diff(request: Request, _: Reader, store: LocalStore) -> WebPage:
    old, new = _number(request, "old"), _number(request, "new")
    return object_diff_page(store, request.path_params["object"], old, new)


def _blame(request: Request, _: Reader, store: LocalStore) -> WebPage:
    return blame_page(store, request.path_params["object"])


def _graph(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    depth = min(4, _number(request, "depth") or 1)
    with reader.graph(store) as (graph, state):
        return graph_page(store, graph, request.path_params["object"], depth, state.note)


def _notes(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    with reader.graph(store) as (graph, state):
        return notes_page(graph, reader.config, request.query_params.get("tag"), state.note)


def _tasks(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    return tasks_page(store, reader.config, request.query_params.get("project"))


def _task(request: Request, _: Reader, store: LocalStore) -> WebPage:
    return task_page(store, request.path_params["task"])


def _observations(request: Request, _: Reader, store: LocalStore) -> WebPage:
    return observations_page(store, request.path_params["session"])


def _memory(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    asked, desk = request.query_params, memory_desk(store, reader.config)
    place, contains, tag = asked.get("place"), asked.get("contains", ""), asked.get("tag")
    page = memory_page(desk, place, contains, tag, edits=reader.edits)
    return replace(page, data={**page.data, "said": asked.get("said", "")[:MOST_SAID]})


def _memory_entry(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    desk = memory_desk(store, reader.config)
    return memory_entry_page(desk, request.path_params["entry"], edits=reader.edits)


def _search(request: Request, reader: Reader, store: LocalStore) -> WebPage:
    asked = request.query_params
    with reader.search(store) as (index, state):
        return search_page(
            store,
            index,
            reader.config,
            asked.get("q", "").strip(),
            asked.get("type"),
            asked.get("session"),
            state.note,
        )


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
