"""A proxy in this process, and a small agent that talks through it over any of the APIs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn

from foredeck.embedded.format import ToolRequest
from foredeck.embedded.responses import gathered, taken_apart
from foredeck.loopback import listening_on
from foredeck_agents.proxy.app import Proxy
from foredeck_agents.proxy.conversations import Conversations, ProxyOptions
from foredeck_agents.proxy.relays import Events
from foredeck_agents.proxy.wires import WIRES, ModelApi

Json = dict[str, Any]

BY_API: Mapping[str, ModelApi] = {wire.format().api: wire for wire in WIRES}


class RunningProxy:
    """Serves on a thread of its own, in front of one upstream for all APIs (which has OpenAI's
    below `/v1`)."""

    def __init__(self, upstream: str, home: Path, cwd: Path, **options: Any) -> None:
        self._listener = listening_on([0])
        self._loop = asyncio.new_event_loop()
        port = self._listener.getsockname()[1]
        self.told: list[str] = []
        bases = {"anthropic": upstream, "openai": f"{upstream}/v1"}
        conversations = Conversations(ProxyOptions(cwd, home, **options))

        async def make() -> Proxy:
            return Proxy(conversations, port, bases, self.told.append)

        self.proxy = self._loop.run_until_complete(make())
        self.address = f"http://127.0.0.1:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(self.proxy, log_level="critical", lifespan="off", ws="none")
        )
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        async def serve() -> None:
            await self._server.serve(sockets=[self._listener])
            await self.proxy.close()

        self._loop.run_until_complete(serve())

    @property
    def url(self) -> str:
        """The address with its token; below it are `/anthropic` and `/openai`."""
        return f"{self.address}/{self.proxy.token}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join(30)


class ProxiedAgent:
    """An agent on one API: `messages` is its own list, as the API has it.

    `run_tool` answers the calls of the model; `tools` are declared as the API wants them, with
    `in_item` as an item of the Responses API, in a namespace of this name.
    """

    def __init__(
        self,
        api: str,
        url: str,
        tools: list[Json],
        run_tool: Callable[[ToolRequest], str],
        *,
        session: str | None = None,
        streams: bool = True,
        in_item: str = "",
    ) -> None:
        self.wire = BY_API[api]
        self.format = self.wire.format()
        path = "/v1/messages" if self.wire.provider == "anthropic" else self.wire.path
        self._url = f"{url}/{self.wire.provider}{path}"
        self.messages: list[Json] = []
        self.usages: list[Json] = []
        self._tools = [self.format.tool(tool) for tool in tools]
        self.run_tool = run_tool
        self._headers = {"x-session-id": session} if session else {}
        self._streams = streams
        self._in_item = in_item

    def body(self) -> Json:
        """The next request."""
        body: Json = {"model": "model", "stream": self._streams, "tools": self._tools}
        if self.wire.provider == "anthropic":
            return {**body, "max_tokens": 100, "system": "Be careful.", "messages": self.messages}
        if self.format.api == "openai-completions":
            system = {"role": "system", "content": "Be careful."}
            options = {"stream_options": {"include_usage": True}} if self._streams else {}
            return {**body, **options, "messages": [system, *self.messages]}
        items = taken_apart(self.messages)
        if self._in_item:  # as Codex has it for models that it drives by code mode
            declared = {"type": "namespace", "name": self._in_item, "tools": body.pop("tools")}
            items = [{"type": "additional_tools", "role": "developer", "tools": [declared]}, *items]
        return {**body, "instructions": "Be careful.", "input": items}

    def say(self, text: str) -> None:
        """A message of the user's."""
        message: Json = {"role": "user", "content": text}
        if self.format.api == "openai-responses":
            message = gathered([{"type": "message", **message}])[0]
        self.messages.append(message)

    def ask(self) -> Json:
        """Ask the model once; its answer, which is in the list then. Raises `httpx.HTTPError`."""
        relay = self.wire.relay()
        relay.begin()
        with (
            httpx.Client(timeout=60) as client,
            client.stream("POST", self._url, json=self.body(), headers=self._headers) as response,
        ):
            if response.status_code != 200:
                response.read()
                response.raise_for_status()
            if self._streams:
                events = Events()
                for piece in response.iter_bytes():
                    for event in events.feed(piece):
                        if (event.data or {}).get("type") == "error":
                            raise httpx.RemoteProtocolError(str(event.data))
                        relay.pass_on(event)
            else:
                response.read()
                relay.take_whole(json.loads(response.content))
        if not relay.ended:
            raise httpx.RemoteProtocolError("the answer is not whole")
        self.messages.append(relay.answer)
        self.usages.append(relay.usage)
        return relay.answer

    def run(self, text: str) -> None:
        """Until the model calls no tool any more."""
        self.say(text)
        while uses := self.format.tool_uses(self.ask()):
            results = [self.format.result(u, self.run_tool(u), failed=False) for u in uses]
            if self.wire.provider == "anthropic":
                self.messages.append({"role": "user", "content": results})
            else:
                self.messages += results
