"""A context manager for anyone's agent loop: messages in, messages out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from foredeck.config import load_config
from foredeck.context.state.chat import Chat
from foredeck.context.wording import images_not_here
from foredeck.embedded.anthropic_messages import AnthropicMessages, markers_in, with_marked_result
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import MessageFormat, ToolRequest, as_mapping, read_at, read_each
from foredeck.embedded.loop_messages import LoopMessages
from foredeck.engine.engine import Engine
from foredeck.errors import ConfigError, ForedeckError, ToolError
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import SessionOpenParams, ToolCallParams, ToolObservedParams
from foredeck.model.call_values import DEFAULT_READ, DEFAULT_WRITE
from foredeck.model.own_tools import OWN_TOOLS, Facility, own_definitions
from foredeck.store.clock import now_ms

Format = Literal["chat", "anthropic"]
R = TypeVar("R")

_FORMATS: Mapping[Format, type[MessageFormat]] = {
    "chat": ChatCompletions,
    "anthropic": AnthropicMessages,
}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model that is called; prices of a million tokens, in any currency.

        ModelInfo("anthropic/claude-opus-5-5", 400_000, input_price=5, cache_seconds=300)

    A price that is None has the usual relation to the others.
    """

    name: str
    """`provider/id`."""
    window: int = 200_000
    """In tokens."""
    input_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    cache_seconds: int | None = None
    """How long the provider keeps a prompt."""

    def record(self, api: str) -> dict[str, Any]:
        provider, slash, id = self.name.partition("/")
        if not slash:
            provider, id = "", self.name
        record: dict[str, Any] = {
            "provider": provider or "unknown",
            "id": id,
            "api": api,
            "contextWindow": self.window,
        }
        if self.input_price is not None:
            read, write = self.cache_read_price, self.cache_write_price
            record["cost"] = {
                "input": self.input_price,
                "output": 0,
                "cacheRead": self.input_price * DEFAULT_READ if read is None else read,
                "cacheWrite": self.input_price * DEFAULT_WRITE if write is None else write,
            }
        if self.cache_seconds is not None:
            record["promptCache"] = {"short": self.cache_seconds}
        return record


class ContextManager:
    """Decides what a model sees of one loop. Not thread-safe; close it, or use `with`.

        with ContextManager("my-session", model=ModelInfo("openai/gpt-5", 400_000)) as context:
            answer = ask(context.prepare(messages, tools=tools), tools=[*tools, *context.tools])

    `session` names the conversation: the same id goes on where it was, in this process or another.
    `format` is that of the messages: `chat` (chat completions) or `anthropic`. `settings` are
    configuration keys (`policy="keep-all"`); without them the user's own configuration holds.
    """

    def __init__(
        self,
        session: str,
        *,
        model: ModelInfo | None = None,
        format: Format | MessageFormat = "chat",
        cwd: str | Path = ".",
        home: str | Path | None = None,
        settings: Mapping[str, str] | None = None,
        by_user: bool = False,
        harness: str = "library",
    ) -> None:
        """`by_user`: memory may keep the user's words. `harness`: the agent's name in lists.

        Raises `ConfigError`, `StoreUnavailable`.
        """
        if isinstance(format, str) and format not in _FORMATS:
            raise ConfigError(f"format {format!r} is none of {', '.join(map(repr, _FORMATS))}.")
        folder = Path(cwd).resolve()
        flags = [f"{key}={value}" for key, value in (settings or {}).items()]
        if home is not None:
            flags.append(f"home={Path(home).resolve()}")
        self._config = load_config(project=folder, trusted=False, flags=flags).config
        self._format = _FORMATS[format]() if isinstance(format, str) else format
        self._by_user = by_user
        self._model = model
        self.notices: list[str] = []
        """What a user should read; the loop may clear it."""
        self._engine = Engine(self._config, Host(notify=self._noted, name=harness))
        for text in self._engine.store_warnings:
            self._noted("error", text)
        self._session = session
        try:
            self._open(folder)
            opened = self._engine.opened
            assert opened is not None
            self._messages = self._loop_messages(opened.session.chat)
        # Its store is open by now.
        except BaseException:
            self._engine.close()
            raise

    def _noted(self, level: str, text: str) -> None:
        if level == "error":
            self.notices.append(text)

    def _open(self, folder: Path) -> None:
        self._engine.open_session(
            SessionOpenParams(
                session=self._session,
                file=None,
                cwd=str(folder),
                reason="resume",
                parent=None,
                by_user=self._by_user,
            )
        )

    def _loop_messages(self, chat: Chat) -> LoopMessages:
        return LoopMessages(self._session, self._format, chat)

    def _taken(self) -> None: ...

    @property
    def tools(self) -> list[dict[str, Any]]:
        """foredeck's own tools, to be declared at every call."""
        declared = self._own_definitions(*self._config.tools.declared())
        return [self._format.tool(each) for each in declared]

    def _own_definitions(self, *facilities: Facility) -> list[dict[str, Any]]:
        return own_definitions(*facilities)

    def owns(self, tool: str) -> bool:
        """Whether `call` answers this tool."""
        return tool in OWN_TOOLS

    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | None = None,
    ) -> list[dict[str, Any]]:
        """What to send in place of `messages`, committed before this returns.

        `tools`: all that are declared; `system`: the prompt, if the API takes it apart. Raises
        `UnknownMessage`, or `ForedeckError`: send `messages` then.
        """
        loop = self._messages
        loop.model = None if self._model is None else self._model.record(self._format.api)
        declared = read_each("tool", self._format.to_definition, tools)
        loop.take(messages, declared, system)
        self._taken()
        answer = self._engine.assemble(loop.request(now_ms()))
        self.notices += [notice["text"] for notice in answer["notices"]]
        prompt = loop.accepted(answer)
        if self._format.api == "anthropic-messages" and answer["marker"]:
            return with_marked_result(prompt, answer["marker"], self._markers_beside(tools))
        return prompt

    def _markers_beside(self, tools: Sequence[Mapping[str, Any]]) -> int:
        # The loop's own system prompt is not seen here; most mark it once.
        return 1 + markers_in([*tools])

    def report(self, usage: Mapping[str, Any] | None) -> None:
        """The API's `usage` of the newest answer, so that tokens are no longer estimated; may be
        None."""
        if usage is not None:
            self._messages.report(self._format.usage(as_mapping(usage)))

    def calls_in(self, answer: Mapping[str, Any]) -> list[ToolRequest]:
        """The tool calls of an answer."""
        return read_at("the answer", self._format.tool_uses, as_mapping(answer))

    def call(self, use: ToolRequest) -> dict[str, Any]:
        """Answers a call of one of `tools`: a message to append (with `anthropic` a block)."""
        params = ToolCallParams(
            session=self._session, id=use.id, tool=use.name, input=dict(use.arguments)
        )
        try:
            result = self._engine.tool_call(params)
        except ToolError as error:
            self._messages.failures.add((use.id, str(error)))
            return self._format.result(use, str(error), failed=True)
        self._messages.details[use.id] = result["details"]
        text = result["text"]
        if images := len(result.get("images", ())):
            # A loop's formats have a text alone for the result of a tool.
            text += f"\n{images_not_here(images)}"
        return self._format.result(use, text, failed=False)

    def observed(self, use: ToolRequest, text: str, *, failed: bool = False) -> dict[str, Any]:
        """Tells that one of the loop's tools has run; returns its result, to be appended.

        Files are read if name and arguments are those of Pi's tools (`read`, `write`, `edit` with
        `path`, `bash` with `command`).
        """
        params = ToolObservedParams(
            session=self._session,
            id=use.id,
            tool=use.name,
            input=dict(use.arguments),
            content=[{"type": "text", "text": text}],
            is_error=failed,
        )
        if use.id:  # else the list of messages says which call it was
            self._engine.tool_observed(params)
        if failed:
            self._messages.failures.add((use.id, text))
        return self._format.result(use, text, failed=failed)

    def close(self) -> None:
        """Closes the store; twice is fine."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncContextManager:
    """`ContextManager` with awaited methods, on a thread of its own.

    async with AsyncContextManager("my-session", format="anthropic") as context:
        answer = await ask(await context.prepare(messages, tools=context.tools))
    """

    def __init__(self, session: str, **arguments: Any) -> None:
        self._arguments = (session, arguments)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foredeck")
        self._manager: ContextManager | None = None

    async def __aenter__(self) -> Self:
        session, arguments = self._arguments
        self._manager = await self._run(lambda: ContextManager(session, **arguments))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | None = None,
    ) -> list[dict[str, Any]]:
        """See `ContextManager.prepare`."""
        manager = self._opened
        return await self._run(lambda: manager.prepare(messages, tools=tools, system=system))

    async def call(self, use: ToolRequest) -> dict[str, Any]:
        """See `ContextManager.call`."""
        manager = self._opened
        return await self._run(lambda: manager.call(use))

    async def observed(
        self, use: ToolRequest, text: str, *, failed: bool = False
    ) -> dict[str, Any]:
        """See `ContextManager.observed`."""
        manager = self._opened
        return await self._run(lambda: manager.observed(use, text, failed=failed))

    def report(self, usage: Mapping[str, Any] | None) -> None:
        """See `ContextManager.report`."""
        self._opened.report(usage)

    def owns(self, tool: str) -> bool:
        """See `ContextManager.owns`."""
        return self._opened.owns(tool)

    def calls_in(self, answer: Mapping[str, Any]) -> list[ToolRequest]:
        """See `ContextManager.calls_in`."""
        return self._opened.calls_in(answer)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """See `ContextManager.tools`."""
        return self._opened.tools

    @property
    def notices(self) -> list[str]:
        """See `ContextManager.notices`."""
        return self._opened.notices

    async def close(self) -> None:
        """Close the store. Twice is fine."""
        if self._manager is not None:
            await self._run(self._manager.close)
            self._manager = None
        self._thread.shutdown()

    @property
    def _opened(self) -> ContextManager:
        if self._manager is None:
            raise RuntimeError("use it with `async with`: it is not open")
        return self._manager

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


_MANAGED = "_managed_by_foredeck"


def manage(client: Any, context: AsyncContextManager) -> None:
    """Lets `client.chat.completions.create` send what `context` makes of its messages.

    `client`: an `openai.AsyncOpenAI` of this conversation alone. If foredeck fails, the messages go
    out as they are.
    """
    completions = client.chat.completions
    # Two managers would each take the other's rewriting for the loop's own messages.
    if getattr(completions.create, _MANAGED, False):
        raise ValueError("this client has a context manager already")
    create = completions.create

    async def managed(**arguments: Any) -> Any:
        tools = arguments.get("tools")
        declared = tools if isinstance(tools, list) else []
        try:
            messages = await context.prepare(list(arguments["messages"]), tools=declared)
        except ForedeckError as error:
            context.notices.append(f"A call went out without foredeck: {error}")
            return await create(**arguments)
        answer = await create(**{**arguments, "messages": messages})
        if (usage := getattr(answer, "usage", None)) is not None:
            context.report(usage)
        return answer

    setattr(managed, _MANAGED, True)
    completions.create = managed
