"""What the proxy does with a request.

What foredeck cannot do, it does without: request and answer pass through as they came.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from foredeck.embedded.format import as_json
from foredeck_agents.proxy import refusals
from foredeck_agents.proxy.conversations import ClientChat, Conversations, ConversationState
from foredeck_agents.proxy.recognition import UnnamedSessions, is_compaction, stable_words
from foredeck_agents.proxy.refusals import asks_to_drop, without_signed
from foredeck_agents.proxy.relays import Events, Relay
from foredeck_agents.proxy.status import StatusPage, status_page
from foredeck_agents.proxy.upstream import (
    NOT_PASSED,
    TOKEN_HEADER,
    plain,
    raw,
    rest_of,
    streamed,
    unless_gone,
    upstream_client,
)
from foredeck_agents.proxy.wires import ModelApi, harness_of, session_of, wire_of

log = logging.getLogger(__name__)

MOST_BODY = 64 * 1024 * 1024
"""A larger request passes unread."""
MOST_ROUNDS = 50
"""Times that the model is asked again for one request."""
_NO_ANSWER = "[foredeck] The model only called foredeck's tools and gave no answer. Ask it again."
MOST_NOTES = 50
"""Different notices that the user reads in one run."""
PROJECT_VARIABLE, _PROJECT_HEADER = "OPENAI_PROJECT", "openai-project"
"""Codex sends the token in place of a project's name."""
_NAMES = ("127.0.0.1", "localhost")
CHATGPT = "https://chatgpt.com/backend-api/codex"
"""Codex's address for accounts of ChatGPT."""
UPSTREAMS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


@dataclass(slots=True)
class _ManagedRequest:
    """One request that foredeck works on."""

    wire: ModelApi
    headers: list[tuple[str, str]]
    url: str
    session: str
    body: dict[str, Any]
    messages: list[dict[str, Any]]
    relay: Relay
    first: str = ""
    words: frozenset[str] = frozenset()
    """`first` and `words` recognise its conversation (`recognition.Profile`)."""
    compacts: bool = False
    """Whether it asks for the summary of its messages."""
    whole: bytes | None = None
    """What goes out of a request for a summary, since signed reasoning is bound to what foredeck
    had sent."""
    number: int = 0
    added: list[dict[str, Any]] = field(default_factory=list)

    @property
    def harness(self) -> str:
        """The agent that sends it."""
        return harness_of(dict(self.headers))


class Proxy:
    """The ASGI application; `upstreams` are base URLs by name, `tell` speaks to the user."""

    def __init__(
        self,
        conversations: Conversations,
        port: int,
        upstreams: Mapping[str, str],
        tell: Callable[[str], None],
        *,
        token: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: what the client would be asked with."""
        self.token = token or secrets.token_urlsafe(32)
        self.notes: list[str] = []
        """What has been said to the user."""
        self.requests = 0
        """How many have come for a provider."""
        self._conversations = conversations
        self._unnamed = UnnamedSessions()
        self._hosts = {f"{name}:{port}" for name in _NAMES}
        self._upstreams = upstreams
        self._tell = tell
        environment = environment or {}
        self._project = environment.get(PROJECT_VARIABLE)
        self._client = upstream_client(environment, self.note)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def close(self) -> None:
        """Close the connections and the conversations."""
        await self._client.aclose()
        await self._conversations.close()

    def note(self, text: str) -> None:
        """Tells the user once, up to a limit; the log has everything."""
        if text not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(text)
            self._tell(text)

    # ------------------------------------------------------------ who, and where to

    async def _response(self, request: Request) -> Response:
        # A page in a browser gets here with an Origin, or by a name of its own that leads to
        # loopback. Programs do neither.
        if request.headers.get("host", "") not in self._hosts or "origin" in request.headers:
            return PlainTextResponse("This proxy serves programs on this machine alone.\n", 421)
        path = request.scope["raw_path"].decode("latin-1")
        first, _, rest = path.removeprefix("/").partition("/")
        if not self._is_token(first):
            given = (request.headers.get(name, "") for name in (TOKEN_HEADER, _PROJECT_HEADER))
            if not any(map(self._is_token, given)):
                return PlainTextResponse("Not found.\n", 404)
            rest = f"{first}/{rest}"
        if request.headers.get("upgrade", "").lower() == "websocket":
            # Clients then go on over HTTP.
            return PlainTextResponse("Ask over HTTP.\n", 426, {"upgrade": "HTTP/1.1"})
        if rest in ("", "status.json"):
            kept, states = self._conversations.options.kept, self._conversations.states.values()
            page = StatusPage(kept, self._upstreams, self.requests, states, self.notes)
            return status_page(page, request, as_json=bool(rest))
        provider, _, path = rest.partition("/")
        base = self._upstream(provider, request)
        if base is None:
            return PlainTextResponse("Not found.\n", 404)
        self.requests += 1
        query = f"?{request.url.query}" if request.url.query else ""
        return await self._passed_or_managed(request, provider, f"/{path}", base, query)

    def _is_token(self, text: str) -> bool:
        # In constant time: how long a refusal takes says nothing of the token.
        return secrets.compare_digest(text.encode(), self.token.encode())

    def _headers(self, request: Request) -> list[tuple[str, str]]:
        headers = [(k, v) for k, v in request.headers.items() if k not in NOT_PASSED]
        if not self._is_token(request.headers.get(_PROJECT_HEADER, "")):
            return headers
        own = [(_PROJECT_HEADER, self._project)] if self._project else []
        return [*(pair for pair in headers if pair[0] != _PROJECT_HEADER), *own]

    def _upstream(self, provider: str, request: Request) -> str | None:
        base = self._upstreams.get(provider)
        if base == UPSTREAMS["openai"] and "chatgpt-account-id" in request.headers:
            return CHATGPT
        return base

    async def _passed_or_managed(
        self, request: Request, provider: str, path: str, base: str, query: str
    ) -> Response:
        url = f"{base.rstrip('/')}{path}{query}"
        headers = self._headers(request)
        if request.method != "POST":
            return await self._passed(request, url, headers, await request.body())
        parts, size = [], 0
        stream = request.stream()
        async for part in stream:
            parts.append(part)
            size += len(part)
            # What has been read goes out first, then the rest as it comes.
            if size > MOST_BODY:
                self.note("A request over 64 MiB went out as it came.")
                length = request.headers.get("content-length")
                headers += [("content-length", length)] if length else []
                return await self._passed(request, url, headers, rest_of(parts, stream))
        body = b"".join(parts)
        wire = wire_of(provider, path)
        # A compressed body is not unpacked here.
        if wire is None or request.headers.get("content-encoding"):
            return await self._passed(request, url, headers, body)
        try:
            # On a thread: megabytes of JSON would hold up the streams of all other conversations.
            call = await asyncio.to_thread(self._read, wire, url, headers, body)
            ready = None if call is None else await self._ready(call)
        except Exception as error:
            log.exception("a request went out as it came")
            self.note(f"A request went out without foredeck: {_short(error)}")
            call = None
        if call is None or ready is None:
            whole = None if call is None else call.whole
            return await self._passed(request, url, headers, whole or body)
        answer = await self._managed(request, call, ready)
        if answer is not None:
            return answer
        again = await self._passed(request, url, headers, call.whole or body)
        # Else it was the client's own doing.
        if again.status_code < 400:
            self.note("A provider refused a request of foredeck's; it went out again as it came.")
        return again

    # ------------------------------------------------------------ passing on

    async def _passed(
        self,
        request: Request,
        url: str,
        headers: list[tuple[str, str]],
        body: bytes | AsyncIterator[bytes],
    ) -> Response:
        sent = self._client.build_request(
            request.method, url, headers=headers, content=body or None
        )
        sending = self._client.send(sent, stream=True)
        try:
            # Whoever waits for the client to leave would take a body that is still coming.
            is_read = isinstance(body, bytes)
            upstream = await (unless_gone(request, sending) if is_read else sending)
        except httpx.HTTPError as error:
            return self._unreachable(url, error)
        return streamed(upstream, raw(upstream))

    def _unreachable(self, url: str, error: Exception) -> Response:
        text = (
            f"{httpx.URL(url).netloc.decode() or url} cannot be reached: {_short(error)}. "
            "Look at the network, or name another address with --upstream."
        )
        self.note(text)
        message = f"foredeck proxy: {text}"
        body = {"type": "error", "error": {"type": "api_error", "message": message}}
        return Response(json.dumps(body), 502, media_type="application/json")

    # ------------------------------------------------------------ with foredeck

    def _read(
        self, wire: ModelApi, url: str, headers: list[tuple[str, str]], raw: bytes
    ) -> _ManagedRequest | None:
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        messages = wire.messages(body) if isinstance(body, dict) else []
        if not messages or not wire.tools(body):
            return None
        system, first = wire.system_text(body, messages), wire.first(messages)
        words = stable_words(system)
        session = session_of(body, dict(headers)) or self._unnamed.session(first, words)
        compacts = is_compaction(body, dict(headers), system, wire.newest(messages))
        call = _ManagedRequest(wire, headers, url, session, body, messages, wire.relay())
        call.first, call.words, call.compacts = first, words, compacts
        return call

    def _state(self, call: _ManagedRequest) -> ConversationState:
        return self._conversations.state(call.session, call.wire)

    async def _ready(self, call: _ManagedRequest, *, with_own: bool = True) -> bytes | None:
        """The body for upstream; None for the client's own, beside the conversation."""
        model = call.wire.model(call.body, dict(call.headers), self._conversations.options.window)
        system = call.wire.system(call.body)
        declared = call.wire.tools(call.body)
        # On the other APIs nothing is refused for what stands before it.
        binds = call.wire.provider == "anthropic" and not asks_to_drop(call.body)
        state = self._state(call)
        problems: list[str] = []

        def do(conversation: ClientChat) -> bytes | None:
            if call.compacts:
                conversation.profile.compacted = True
                if not conversation.profile.requests:
                    return None
                if binds:
                    whole = without_signed(call.messages, len(call.messages))
                    call.whole = as_json({**call.body, "messages": whole})
                if not conversation.begins_alike(call.words, declared):
                    return None
                # No call of the conversation's, whose figures and list are others.
                call.number = -1
                own = conversation.own_tools(declared) if with_own else []
                call.relay.own = conversation.own
                arguments = (call.messages, [*declared, *own], system, call.added, binds)
                summarised = conversation.for_summary(*arguments)
                return as_json(call.wire.with_messages(call.body, summarised, own))
            # Not a second time, where the model is asked again.
            if not call.number and not conversation.takes(call.first, call.words, declared):
                return None
            own = conversation.own_tools(declared) if with_own else []
            call.relay.own = conversation.own
            messages, call.number = conversation.ready(
                call.messages,
                [*declared, *own],
                system,
                model,
                call.added,
                call.wire.markers_beside(call.body),
                binds,
            )
            state.notices += conversation.notices
            conversation.notices.clear()
            problems.extend(conversation.problems)
            conversation.problems.clear()
            # The conversation's thread writes the body, too: the event loop has the streams.
            changed = call.wire.with_messages(call.body, messages, own)
            return as_json(changed)

        try:
            ready = await self._conversations.work(call.session, call.wire, call.harness, do)
            state.passed += ready is None
            return ready
        except Exception:
            state.passed += 1
            raise
        finally:
            for text in problems:
                self.note(text)

    async def _send(self, call: _ManagedRequest, body: bytes) -> httpx.Response:
        headers = [(k, v) for k, v in call.headers if k != "accept-encoding"]
        # Events are read as they come, and could not be within a compressed stream.
        headers.append(("accept-encoding", "identity"))
        sent = self._client.build_request("POST", call.url, headers=headers, content=body)
        return await self._client.send(sent, stream=True)

    async def _managed(
        self, request: Request, call: _ManagedRequest, body: bytes
    ) -> Response | None:
        """The client's answer; None if the upstream may refuse foredeck's changes."""
        state = self._state(call)
        state.managed += 1
        state.model = str(call.body.get("model") or "")
        try:
            upstream = await unless_gone(request, self._send(call, body))
        except httpx.HTTPError as error:
            return self._unreachable(call.url, error)
        if upstream.status_code in refusals.STATUSES:
            refusal = await upstream.aread()
            is_ours = await asyncio.to_thread(_is_ours, refusal, call, body)
            return None if is_ours else plain(upstream, refusal)
        kind = upstream.headers.get("content-type", "").partition(";")[0].strip()
        if upstream.status_code != 200 or kind not in ("text/event-stream", "application/json"):
            return streamed(upstream, raw(upstream))
        call.relay.begin()
        if kind == "text/event-stream":
            return streamed(upstream, self._relayed(call, upstream), decoded=True)
        return await self._whole(call, upstream)

    async def _relayed(
        self, call: _ManagedRequest, upstream: httpx.Response
    ) -> AsyncIterator[bytes]:
        relay = call.relay
        try:
            while True:
                events, is_read = Events(), True
                async for piece in upstream.aiter_bytes():
                    shown = []
                    for event in events.feed(piece):
                        try:
                            shown.append(relay.pass_on(event) if is_read else event.raw)
                        except Exception:
                            log.exception("a stream is passed on as it comes from here on")
                            is_read = False
                            shown.append(relay.held + event.raw)
                    if together := b"".join(shown):
                        yield together
                await upstream.aclose()
                # The stream ended in the middle, or could not be read: the client gets what is left
                # of it.
                if not is_read or not relay.ended:
                    yield (relay.held if is_read else b"") + events.left
                    return
                try:
                    again = await self._again(call)
                    if again is None:
                        break
                    upstream = await self._send(call, again)
                except Exception as error:
                    log.exception("a request was not gone on with")
                    # The client has had this answer as it came: its end, which is held, makes it
                    # whole.
                    if not relay.changed:
                        break
                    self.note(f"An answer was cut short: {_short(error)}")
                    yield relay.failure(f"foredeck proxy: {_short(error)}")
                    return
                if upstream.status_code != 200:
                    # The client has a stream with status 200 already: the failure becomes an event
                    # of it.
                    text = (await upstream.aread()).decode("utf-8", "replace")
                    yield relay.failure(f"{upstream.status_code}: {text[:500]}")
                    return
                relay.begin()
            yield relay.finish()
        finally:
            await upstream.aclose()

    async def _whole(self, call: _ManagedRequest, upstream: httpx.Response) -> Response:
        raw, first = await upstream.aread(), upstream
        try:
            call.relay.take_whole(json.loads(raw))
            while (again := await self._again(call)) is not None:
                upstream = await self._send(call, again)
                body = await upstream.aread()
                if upstream.status_code != 200:
                    return plain(upstream, body)
                call.relay.begin()
                call.relay.take_whole(json.loads(body))
        except Exception as error:
            log.exception("an answer went on as it came")
            self.note(f"An answer went on as it came: {_short(error)}")
            return plain(first, raw)
        if not call.relay.changed:
            return plain(first, raw)
        return plain(first, as_json(call.relay.whole()))

    async def _again(self, call: _ManagedRequest) -> bytes | None:
        """The next request to the model; None if the client is next."""
        relay, number = call.relay, call.number
        self._state(call).count(call.wire.format().usage(relay.usage), again=relay.rounds > 1)
        added = await self._conversations.work(
            call.session,
            call.wire,
            call.harness,
            lambda c: c.answered(number, relay.answer, relay.usage, relay.own),
        )
        if not added:
            return None
        if relay.rounds > MOST_ROUNDS:
            self.note(f"A model called foredeck's tools {MOST_ROUNDS} times without an answer.")
            relay.give_up(_NO_ANSWER)
            return None
        self._state(call).own_calls += 1
        call.added += added
        # At last it is given none of them, and can but go on.
        return await self._ready(call, with_own=relay.rounds < MOST_ROUNDS)


def _is_ours(refusal: bytes, call: _ManagedRequest, sent: bytes) -> bool:
    return refusals.may_be_ours(refusal, call.body, json.loads(sent), call.wire.listed)


def _short(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    text = str(error) or type(error).__name__
    return text.splitlines()[0][:300]
