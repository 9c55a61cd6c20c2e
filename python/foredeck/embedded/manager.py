"""A context manager for anyone's agent loop: messages in, messages out; and one conversation in
the loop's shape and in the engine's, side by side.

The engine, the store and the policies are those that Pi has; what the shim does there is done here
(`hosts/simulated_host.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from foredeck.config import load_config
from foredeck.context.state.chat import Chat
from foredeck.context.wording import images_not_here
from foredeck.embedded.anthropic_messages import AnthropicMessages
from foredeck.embedded.cache_markers import markers_in, with_marked_result
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import (
    CountedTokens,
    Message,
    MessageFormat,
    ToolRequest,
    as_mapping,
    read_at,
    read_each,
)
from foredeck.embedded.pairing import Pairing
from foredeck.engine.engine import Engine
from foredeck.errors import ToolError
from foredeck.hosts.host import Host
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import (
    AssembleParams,
    SentPlan,
    SessionOpenParams,
    ToolCallParams,
    ToolObservedParams,
)
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.messages import entry_at, load_message, text_in
from foredeck.model.own_tools import DEFINITIONS, OWN_TOOLS
from foredeck.store.clock import now_ms

Format = Literal["chat", "anthropic"]
R = TypeVar("R")

_FORMATS: Mapping[Format, type[MessageFormat]] = {
    "chat": ChatCompletions,
    "anthropic": AnthropicMessages,
}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model that is called: what folding pays depends on its window and prices.

    Prices are of a million tokens, in any currency. None: the usual relations are assumed.
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
        """As the engine gets it."""
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
                "cacheRead": self.input_price / 10 if read is None else read,
                "cacheWrite": self.input_price * 1.25 if write is None else write,
            }
        if self.cache_seconds is not None:
            record["promptCache"] = {"short": self.cache_seconds}
        return record


class LoopMessages:
    """Follows the loop's list from call to call.

    The engine identifies messages by what is in them and by their time stamps, which the loop's
    have none of: a message keeps that under which it was seen first, across processes too.
    """

    def __init__(self, session: str, format: MessageFormat, chat: Chat) -> None:
        self._format = format
        self._host = SimulatedHost(session)
        self._originals: list[Mapping[str, Any]] = []
        """The loop's messages, those of the system left out, as they were at the newest call."""
        self._made: list[Message] = []
        """The messages of the engine's that say just what the loop's do."""
        self._shown: list[Message] = []
        """The engine's messages, in the words of the loop."""
        self._places: list[int] = []
        """By message of the engine's: which of the loop's it is from."""
        self._before: list[Mapping[str, Any]] = []
        """System messages, which go out as they are."""
        self._pairing = Pairing()
        self._known = _stored_messages(chat)
        self._usages: dict[int, CountedTokens] = {}
        self.details: dict[str, Any] = {}
        """What our tools' results keep for the engine, by the id of the call."""
        self.model: dict[str, Any] | None = None

    def take(
        self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]], system: str | None
    ) -> None:
        """The list before a call."""
        messages = read_each("message", as_mapping, messages)
        uses = read_each("message", self._format.tool_uses, messages)
        names = {use.id: use.name for each in uses for use in each}
        first = next(
            (n for n, m in enumerate(messages) if not self._format.is_system(m)), len(messages)
        )
        self._before, self._originals = list(messages[:first]), list(messages[first:])
        groups = read_each(
            "message", lambda m: self._format.to_engine(m, names), self._originals, first
        )
        made = [(message, place) for place, group in enumerate(groups) for message in group]
        made = self._pairing.own(made)
        self._made = [message for message, _ in made]
        shown, seen, self._places = self._arranged(made)
        self._host.messages = [self._stamped(n, message) for n, message in enumerate(seen)]
        self._shown = self._host.messages if shown is seen else shown
        # Pi's entries have ids of their own; a loop's messages have but their places.
        self._host.entries = [entry_at(number) for number in range(len(seen))]
        texts = [{"role": "system", "content": text_in(m.get("content"))} for m in self._before]
        self._host.system = [*texts, *([{"role": "system", "content": system}] if system else [])]
        self._host.tools = tools

    def _arranged(
        self, made: list[tuple[Message, int]]
    ) -> tuple[list[Message], list[Message], list[int]]:
        """The messages as they go out, as the engine sees them, and which of the loop's each is
        from; below zero for one that the loop does not have. The same number, the same message."""
        messages = [message for message, _ in made]
        return messages, messages, [place for _, place in made]

    def _stamped(self, index: int, message: Message) -> Message:
        """The message as the engine knows it, with the time at which it was seen first."""
        known = self._known[index] if index < len(self._known) else None
        if known is None or bare(known) != message:
            # The engine would take a message with another time for another message.
            if index < len(self._known):  # the loop has changed it: so has all that follows
                del self._known[index:]
                self._usages = {n: usage for n, usage in self._usages.items() if n < index}
            known = {**message, **self._by(message), "timestamp": now_ms()}
            self._known.append(known)
        if message["role"] == "assistant" and index in self._usages:
            # Not kept with what is known: it would make another message of the one that was stored.
            usage = self._usages[index]
            counted = {"input": usage.fresh, "cacheRead": usage.read, "cacheWrite": usage.written}
            return {**known, "usage": {**counted, "output": 0}}
        details = self.details.get(str(self._pairing.outside(message).get("toolCallId")))
        return known if details is None else {**known, "details": details}

    def _by(self, message: Message) -> Message:
        """Who wrote an answer: what a provider counts is measured for each model."""
        if self.model is None or message["role"] != "assistant":
            return {}
        model = self.model
        return {"provider": model["provider"], "model": model["id"], "api": model["api"]}

    def request(self, time_ms: int) -> AssembleParams:
        """The parameters of `context/assemble`."""
        self._host.model = self.model
        return self._host.request(time_ms)

    def report(self, usage: CountedTokens) -> None:
        """What the provider has counted: it belongs to the answer that comes next in the list."""
        self._usages[len(self._host.messages)] = usage

    def accepted(self, answer: SentPlan) -> list[dict[str, Any]]:
        """What goes out: the loop's own messages, but for those that foredeck has changed."""
        self._host.accept(answer)
        places: list[int | None] = []
        for index in range(len(self._host.messages) + 1):
            slot = self._host.plan.slot(index)
            places += [None] * len(slot.says)
            if index < len(self._host.messages) and not slot.is_omitted:
                places.append(self._places[index])
        sent = list(zip(places, self._applied(self._host.plan), strict=True))
        whole = Counter(self._places)
        held = {id(message) for message in self._made}
        if self._shown is self._host.messages:
            held.update(map(id, self._shown))
        found: list[dict[str, Any]] = [dict(message) for message in self._before]
        for place, pairs in groupby(sent, key=lambda pair: pair[0]):
            sent_group = [message for _, message in pairs]
            group = [self._pairing.outside(message) for message in sent_group]
            if place is None:
                found += [self._format.from_engine([message], None) for message in group]
            elif place < 0:
                found.append(self._format.from_engine(group, None))
            # The loop's own object, so that what the API's client needs of it beside the text
            # stays.
            elif len(group) == whole[place] and all(id(message) in held for message in sent_group):
                found.append(dict(self._originals[place]))
            else:
                found.append(self._format.from_engine(group, self._originals[place]))
        return found

    def _applied(self, plan: SlotPlan) -> list[Message]:
        return plan.apply(self._shown)


def _stored_messages(chat: Chat) -> list[Message]:
    """What a conversation that goes on has said so far, as it was stored."""
    record = chat.newest_record
    if record is None:
        return []
    state = chat.replay(record.id)
    return [load_message(key.address, chat.store.blob) for key in state.keys]


_ADDED = frozenset({"timestamp", "provider", "model", "api"})
"""What a message of the loop's does not have."""


def bare(message: Message) -> Message:
    """A message without what the loop's does not have."""
    return {name: value for name, value in message.items() if name not in _ADDED}


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
    ) -> None:
        """`home`: the state folder. `by_user`: what the messages have as the user's is typed
        by the user of this machine, whose word memory may keep.

        Raises `ConfigError`, `StoreUnavailable`.
        """
        folder = Path(cwd).resolve()
        flags = [f"{key}={value}" for key, value in (settings or {}).items()]
        if home is not None:
            flags.append(f"home={Path(home).resolve()}")
        self._config = load_config(project=folder, trusted=False, flags=flags).config
        self._format = _FORMATS[format]() if isinstance(format, str) else format
        self._by_user = by_user
        self._model = model
        self.notices: list[str] = []
        """What a user should read; the loop shows it, and may clear it."""
        self._engine = Engine(self._config, Host(notify=self._noted))
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
        """Take a notice that belongs to no call."""
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

    def _taken(self) -> None:
        """The list of a call has been read, and is about to be worked on."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """foredeck's own tools, to be declared beside the loop's, and the same at every call."""
        facilities = self._config.tools.declared()
        declared = [each for each in DEFINITIONS if each["facility"] in facilities]
        return [self._format.tool(each) for each in declared]

    def owns(self, tool: str) -> bool:
        """Whether a tool is foredeck's, so that `call` answers it."""
        return tool in OWN_TOOLS

    def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | None = None,
    ) -> list[dict[str, Any]]:
        """What to send in place of `messages`, which stay the loop's own and are not changed.

        `tools`: all that are declared with the call; `system`: the prompt, where the API takes it
        apart. It is committed before this returns. Raises `UnknownMessage`; where the engine fails,
        `ForedeckError`: the loop may then send `messages` as they are.
        """
        loop = self._messages
        loop.model = None if self._model is None else self._model.record(self._format.api)
        declared = read_each("tool", self._format.to_definition, tools)
        loop.take(messages, declared, system)
        self._taken()
        answer = self._engine.assemble(loop.request(now_ms()))
        self.notices += [notice["text"] for notice in answer["notices"]]
        sent = loop.accepted(answer)
        if self._format.api == "anthropic-messages" and answer["marker"]:
            return with_marked_result(sent, answer["marker"], self._markers_beside(tools))
        return sent

    def _markers_beside(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """How many cache markers the request may have beside its messages."""
        # The loop's own system prompt is not seen here; most mark it once.
        return 1 + markers_in([*tools])

    def report(self, usage: Mapping[str, Any] | None) -> None:
        """The API's `usage` of the answer to the newest `prepare`: tokens are then measured, and no
        longer estimated. None, as of a stream that does not count: nothing is."""
        if usage is not None:
            self._messages.report(self._format.usage(as_mapping(usage)))

    def calls_in(self, answer: Mapping[str, Any]) -> list[ToolRequest]:
        """The tool calls of an answer."""
        return read_at("the answer", self._format.tool_uses, as_mapping(answer))

    def call(self, use: ToolRequest) -> dict[str, Any]:
        """Answer a call of one of `tools`: a message to append (with `anthropic` a block)."""
        params = ToolCallParams(
            session=self._session, id=use.id, tool=use.name, input=dict(use.arguments)
        )
        try:
            made = self._engine.tool_call(params)
        except ToolError as error:
            return self._format.result(use, str(error), failed=True)
        self._messages.details[use.id] = made["details"]
        text = made["text"]
        if images := len(made.get("images", ())):
            # A loop's formats have a text alone for the result of a tool.
            text += f"\n{images_not_here(images)}"
        return self._format.result(use, text, failed=False)

    def observed(self, use: ToolRequest, text: str, *, failed: bool = False) -> dict[str, Any]:
        """Say that one of the loop's tools has run, right after it; its result, to be appended.

        Files that it read or changed are read while they are as it left them, where its name
        and arguments are those of Pi's tools (`read`, `write`, `edit` with `path`, `bash` with
        `command`).
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
        return self._format.result(use, text, failed=failed)

    def close(self) -> None:
        """Close the store, which has everything. Twice is fine."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncContextManager:
    """`ContextManager` with methods that are awaited; its arguments are the same.

    An engine belongs to one thread, so each of these has one of its own, and calls take turns.
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
