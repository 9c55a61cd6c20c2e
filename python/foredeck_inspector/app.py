"""The inspector's routes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from foredeck.config import Resolved
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.reader import Reader
from foredeck.memory.entry import NoSuchEntry
from foredeck_inspector.pages import FORMS, STATIC, Asked, BadRequest, WebPage, link, respond
from foredeck_inspector.views.calls import call_page
from foredeck_inspector.views.objects import object_page
from foredeck_inspector.views.overview import newest_session, overview_page, settings_page
from foredeck_inspector.views.records import memory_page, notes_page, tasks_page
from foredeck_inspector.views.search import search_page
from foredeck_inspector.views.sessions import compare_page, session_page
from foredeck_inspector.work import Work

_VIEWS: dict[str, Callable[[Asked], WebPage]] = {
    "/overview": overview_page,
    "/compare": compare_page,
    "/sessions/{session}": session_page,
    "/sessions/{session}/calls/{call:int}": call_page,
    "/objects/{object}": object_page,
    "/search": search_page,
    "/notes": notes_page,
    "/tasks": tasks_page,
    "/memory": memory_page,
    "/settings": settings_page,
}


def make_app(reader: Reader, work: Work, resolved: Resolved) -> Starlette:
    """The application, which only reads."""
    routes: list[Route | Mount] = [
        Route("/", lambda _: RedirectResponse("/overview", 303)),
        Route("/follow", _following(reader)),
        Route("/follow.json", _following(reader)),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    for path, view in _VIEWS.items():
        answer = _answering(view, reader, work, resolved)
        # Other forms first: `{session}` would take `ID.json` for an id.
        routes += [Route(f"{path}{form}", answer) for form in (*FORMS, "")]
    routes.append(Route("/{path:path}", _unknown))
    return Starlette(routes=routes, middleware=[Middleware(_AsItWasSent)])


def _following(reader: Reader) -> Callable[[Request], Response]:
    """Leads to the session active last, and says how many calls it has."""

    def follow(request: Request) -> Response:
        with reader.store() as store:
            session, calls = newest_session(store) or ("", 0)
        address = link("sessions", session, follow=1) if session else "/overview"
        if not request.url.path.endswith(".json"):
            return RedirectResponse(address, 303)
        return JSONResponse({"session": session, "calls": calls, "address": address})

    return follow


def _answering(
    view: Callable[[Asked], WebPage], reader: Reader, work: Work, resolved: Resolved
) -> Callable[[Request], Response]:
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
                is_form = request.url.path.endswith(FORMS)
                for_it = work.patient() if is_form else work
                # Some tables are completed as they are written.
                return respond(request, view(Asked(request, reader, store, for_it, resolved)))
        except (NotFound, NoSuchEntry) as error:
            page = _refusal("Not found", str(error), 404)
        except BadRequest as error:
            page = _refusal("Not understood", str(error), 400)
        except ForedeckError as error:
            page = _refusal("Not to be read", str(error), 503)
        return respond(request, page)

    return answer


def _unknown(request: Request) -> Response:
    return respond(request, _refusal("Not found", f"There is no page {request.url.path}.", 404))


def _refusal(title: str, text: str, status: int) -> WebPage:
    return WebPage("refusal.html", title, {"error": text}, status=status)


class _AsItWasSent:
    """Routes see the path as sent, so a slash within a name is none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("ascii")}
        await self._app(scope, receive, send)
