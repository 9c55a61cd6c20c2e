"""What is carried of a prompt."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from foredeck.context.messages.items import Block, blocks_chars, text_block
from foredeck.context.messages.shape import UNSENT_STOPS, Message, time_of, to_item
from foredeck.context.wording import CARRIED
from foredeck.model.messages import text_in
from foredeck.model.wrappings import asked
from foredeck.search.secrets import MASK, mask_secrets
from foredeck_agents.carry.tools import PI_TOOLS, Words, their_calls

ELEMENT = "foredeck-context"
"""Marks what the user did not type."""
_CLOSING = re.compile(rf"</(?=\s*{ELEMENT})", re.IGNORECASE)
_HANDLE = re.compile(r"@\d+(?: v\d+)?")
"""Before content in full; the new session gives its own handle."""
_LOOKING = frozenset({"bash", "grep", "find", "ls"})
"""Tools of Pi's whose results name files; those of others may be a file's own text."""
_SUMMARY = re.compile(
    "This session is being continued from a previous conversation"
    "|Another language model started to solve this problem"
)
"""The beginning of an agent's own summary."""
INTERRUPTED = "[foredeck] No result: the call was interrupted."


@dataclass(frozen=True, slots=True)
class NewSession:
    """The session that is written. `began`: as its format has times."""

    id: str
    cwd: str
    title: str
    began: str
    model: str = ""


@dataclass(slots=True)
class Carried:
    """The messages; `left_out` and `changed` count the rest."""

    messages: list[Message] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    secrets: int = 0
    unmoved: int = 0
    """Messages that still name the folder where the session worked."""

    @property
    def chars(self) -> int:
        return sum(blocks_chars(message["content"]) for message in self.messages)


def made_id(*parts: str, dashes: str = "") -> str:
    """The same id for the same parts: a UUID if it has dashes."""
    digits = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    if not dashes:
        return digits
    digits = f"{digits[:12]}4{digits[13:16]}8{digits[17:]}"
    ends = (8, 12, 16, 20, 32)
    return dashes.join(digits[a:b] for a, b in zip((0, *ends), ends, strict=False))


def call_ids(session: str) -> str:
    """Prefix of carried calls' ids."""
    return f"call_{made_id(session)[:8]}"


def whole_text(text: str) -> str:
    """A text without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def stamp(message: Message) -> str:
    """When a message was made, as agents write times."""
    return stamp_of(time_of(message))


def stamp_of(time_ms: int) -> str:
    """A time in milliseconds since 1970, as agents write it."""
    at = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def carried(
    prompt: Sequence[Message],
    ours: Collection[int],
    session: str,
    words: Words | None,
    folders: Folders,
) -> Carried:
    """The messages for another agent's session, the note first.

    `ours`: numbers of foredeck's messages; `words`: the agent's tools.
    """
    result = Carried()
    reading = _PromptReader(result, session, words, folders)
    for number, message in enumerate(prompt):
        reading.take(number, message, is_ours=number in ours)
    reading.answer_rest()
    for message in result.messages[:-1]:
        texts = [str(block.get("text") or "") for block in message["content"]]
        result.unmoved += any(folders.moved(text) != text for text in texts)
    # The note is first: an agent may take a session that ends with it for one that was broken off.
    note = result.messages.pop()
    # And as old as what it stands before: opencode sorts by time.
    times = (time_of(message) for message in result.messages)
    note["timestamp"] = min(times, default=time_of(note))
    result.messages[:0] = [note]
    for number, message in enumerate(result.messages):
        message["number"] = number
    return result


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the session worked, and where it goes on."""

    before: str
    now: str

    def moved(self, text: str) -> str:
        """A text with paths of the first folder moved to the second."""
        if self.before in ("", self.now):
            return text
        begins = r"(?:(?<![\w./~-])|(?<=://))"
        return re.sub(rf"{begins}{re.escape(self.before)}(?![\w-]|\.\w)", lambda _: self.now, text)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _with_texts(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


class _PromptReader:
    def __init__(self, found: Carried, session: str, words: Words | None, folders: Folders) -> None:
        self._found, self._session = found, session
        self._words, self._folders = words, folders
        self._open: dict[str, list[tuple[str, str]]] = {}
        self._waiting: list[Message] = []

    def take(self, number: int, message: Message, *, is_ours: bool) -> None:
        role = message.get("role")
        if message.get("excludeFromContext") or message.get("stopReason") in UNSENT_STOPS:
            self._found.left_out["answers that broke off" if role == "assistant" else "notes"] += 1
        elif role == "toolResult":
            self._result(message)
        elif role == "assistant":
            self.answer_rest()
            self._answer(number, message)
        else:
            self._said(message, is_ours=is_ours or role != "user")

    def answer_rest(self) -> None:
        """Answers calls that have no result."""
        for calls in self._open.values():
            self._found.changed["calls without a result"] += len(calls)
            self._answered(calls, [text_block(INTERRUPTED)], {"isError": True})
        self._open = {}
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._add(message)

    def _answered(self, calls: list[tuple[str, str]], blocks: list[Block], by: Message) -> None:
        failed, last = bool(by.get("isError")), self._found.messages[-1]
        for id, tool in calls:
            own = {"toolCallId": id, "toolName": tool, "content": blocks, "isError": failed}
            at = time_of(by) or time_of(last)
            self._add({"role": "toolResult", **own, "timestamp": at})

    def _add(self, message: Message) -> None:
        self._found.messages.append(message)

    def _answer(self, number: int, message: Message) -> None:
        blocks: list[Block] = []
        for place, block in enumerate(to_item(message, None, {}).blocks):
            match block.get("type"):
                case "thinking":
                    self._found.left_out["thoughts of the model"] += 1
                case "toolCall":
                    blocks += self._calls(f"{number}.{place}", block)
                case "text" if str(block.get("text") or "").strip():
                    blocks.append(text_block(self._masked(self._folders.moved(block["text"]))))
        if blocks:
            asks = any(block["type"] == "toolCall" for block in blocks)
            stop = {"stopReason": "toolUse" if asks else "stop", "timestamp": time_of(message)}
            fields = {name: message.get(name) or "" for name in ("api", "provider", "model")}
            self._add({"role": "assistant", "content": blocks, **fields, **stop})

    def _calls(self, place: str, block: Block) -> Iterator[Block]:
        arguments = block.get("arguments")
        given = _with_texts(arguments if isinstance(arguments, dict) else {}, self._folders.moved)
        name = str(block.get("name") or "")
        if name not in PI_TOOLS:
            self._found.changed[f"calls of {name}"] += 1
        theirs = their_calls(name, given, self._words, self._folders.now)
        calls = [
            (call_ids(self._session) + made_id(f"{place}.{n}")[:16], *call)
            for n, call in enumerate(theirs)
        ]
        self._open.setdefault(str(block.get("id") or ""), []).extend((id, n) for id, n, _ in calls)
        for id, tool, each in calls:
            arguments = _with_texts(each, self._masked)
            yield {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}

    def _result(self, message: Message) -> None:
        calls = self._open.pop(str(message.get("toolCallId") or ""), None)
        if calls is None:
            self._found.left_out["results without a call"] += 1
            return
        is_moved = message.get("toolName") in _LOOKING
        blocks = self._blocks(message, is_moved=is_moved)
        blocks = [b for b in blocks if not _HANDLE.fullmatch(b.get("text") or "")]
        blocks = blocks or [text_block("(no output)")]
        self._answered(calls, blocks, message)
        if not self._open:
            self.answer_rest()

    def _said(self, message: Message, *, is_ours: bool) -> None:
        is_note = text_in(message.get("content")).startswith(CARRIED)
        blocks = self._blocks(message, is_moved=is_ours and not is_note)
        if not is_ours:
            is_ours = any(_SUMMARY.match(b.get("text") or "") for b in blocks)
            own = [b for b in blocks if is_ours or b["type"] != "text" or asked(b["text"])]
            self._found.left_out["notes of its agent"] += len(blocks) - len(own)
            blocks = own
        elif message.get("role") == "custom":
            self._found.left_out["notes of its agent"] += 1
            return
        if not blocks:
            return
        role = {"role": "custom", "customType": "foredeck"} if is_ours else {"role": "user"}
        said = {**role, "content": blocks, "timestamp": time_of(message)}
        if self._open:
            self._waiting.append(said)
        else:
            self._add(said)

    def _blocks(self, message: Message, *, is_moved: bool) -> list[Block]:
        blocks = []
        for block in to_item(message, None, {}).blocks:
            if block.get("type") == "image":
                blocks.append(block)
            elif text := str(block.get("text") or ""):
                text = self._folders.moved(text) if is_moved else text
                blocks.append(text_block(self._masked(text)))
        return blocks

    def _masked(self, text: str) -> str:
        text = whole_text(text)
        masked = mask_secrets(text)
        self._found.secrets += masked.count(MASK) - text.count(MASK)
        return masked


def wrapped(message: Message) -> str:
    text = _CLOSING.sub("<\\/", text_in(message["content"]))
    return f"<{ELEMENT}>\n{text}\n</{ELEMENT}>"
