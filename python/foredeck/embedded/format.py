"""How an agent loop's messages become the engine's, and go back.

A *group* is what one message of the loop becomes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from foredeck.context.messages.items import text_block
from foredeck.errors import ForedeckError

Message = dict[str, Any]
R = TypeVar("R")


class UnknownMessage(ForedeckError, ValueError):
    """A message that is in no shape that can be read."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call of the model's."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CountedTokens:
    """The provider's count of one call."""

    fresh: int
    read: int = 0
    written: int = 0


class MessageFormat(Protocol):
    """The messages of one API."""

    api: str
    """The engine's name of the API."""

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        """One message as the engine's, without time stamps. Raises `UnknownMessage`."""

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        """What goes out for a changed group; `original` is None for one that foredeck added."""

    def is_system(self, message: Mapping[str, Any]) -> bool: ...

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]: ...

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `tool`."""

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]: ...

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        """A message, or a block of one if the API wants that."""

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        """The API's own figures."""


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [block for block in content or () if isinstance(block, dict)]


def result_message(
    id: str, names: Mapping[str, str], content: list[dict[str, Any]], *, failed: bool
) -> Message:
    """A tool's result as the engine's message. `names`: tools by the id of the call."""
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": names.get(id, "tool"),
        "content": content,
        "isError": failed,
    }


FOREIGN = "foreign"
"""A block that is kept as it came."""
_OURS = frozenset({"foreign", "image", "text", "thinking", "toolCall"})


def kept(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block that is not worked on, without its cache marker. Raises `UnknownMessage` for one
    without a type."""
    kind = block.get("type")
    if not isinstance(kind, str):
        raise UnknownMessage(f"a block of the type {kind!r} cannot be read")
    own = {name: value for name, value in block.items() if name != "cache_control"}
    return {"type": FOREIGN, "block": own} if kind in _OURS else own


def released(block: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `kept`."""
    if block["type"] == FOREIGN:
        return dict(block["block"])
    # What is read back from the store has its members in another order.
    return {"type": block["type"], **block}


def arguments_in(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    return {} if given is None else {"input": given}


def input_of(arguments: Mapping[str, Any], given: Any) -> Any:
    """A tool's input after its arguments were changed, in the shape that it had."""
    is_object = given is None or isinstance(given, Mapping)
    return arguments if is_object or set(arguments) != {"input"} else arguments["input"]


Convert = Callable[[dict[str, Any]], dict[str, Any]]


def as_they_came(
    blocks: Sequence[dict[str, Any]],
    had: Sequence[dict[str, Any]],
    to_engine: Convert,
    changed: Callable[[dict[str, Any], dict[str, Any] | None], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Changed blocks; those that say the same are the loop's own."""
    pairs = [(block, to_engine(block)) for block in had]
    originals: list[dict[str, Any] | None] = []
    for block in blocks:
        at = next((n for n, (_, own) in enumerate(pairs) if own == block), None)
        originals.append(None if at is None else pairs.pop(at)[0])
    blocks_out: list[dict[str, Any]] = []
    for block, own in zip(blocks, originals, strict=True):
        if own is not None:
            blocks_out.append(own)
            continue
        at = next((n for n, (_, own) in enumerate(pairs) if _may_be(own, block)), None)
        blocks_out.append(changed(block, None if at is None else pairs.pop(at)[0]))
    return blocks_out


def _may_be(own: Mapping[str, Any], block: Mapping[str, Any]) -> bool:
    is_kind = own["type"] == block["type"] in ("text", "toolCall")
    return is_kind and own.get("id") == block.get("id")


def with_marker(
    content: list[dict[str, Any]], had: Sequence[Mapping[str, Any]], unmarked: Container[str] = ()
) -> list[dict[str, Any]]:
    """Content with the loop's last cache marker, if it has lost that."""
    marker = next((b["cache_control"] for b in reversed(had) if b.get("cache_control")), None)
    if marker is None or any(block.get("cache_control") == marker for block in content):
        return content
    for place in reversed(range(len(content))):
        if content[place].get("type") not in unmarked:
            content[place] = {**content[place], "cache_control": marker}
            break
    return content


def definition_of(tool: Mapping[str, Any], parameters: str = "parameters") -> dict[str, Any]:
    return {
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get(parameters) or {},
    }


def as_mapping(message: Any) -> Mapping[str, Any]:
    """A message as plain data. Raises `UnknownMessage`."""
    plain = _plain(message)
    if not isinstance(plain, Mapping):
        raise UnknownMessage(f"a {type(message).__name__} is no message that can be read")
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        inner = {name: _plain(item) for name, item in value.items()}
        is_same = all(inner[name] is item for name, item in value.items())
        return value if is_same else inner
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        is_same = isinstance(value, list) and all(a is b for a, b in zip(items, value, strict=True))
        return value if is_same else items
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(exclude_none=True)


def read_at(place: str, how: Callable[..., R], *arguments: Any) -> R:
    """What `how` makes of a value; raises `UnknownMessage` that names the place."""
    try:
        return how(*arguments)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        is_named = isinstance(error, UnknownMessage)
        reason = str(error) if is_named else f"it cannot be read ({type(error).__name__}: {error})"
        raise UnknownMessage(f"{place}: {reason}") from error


def read_each(what: str, how: Callable[[Any], R], given: Iterable[Any], first: int = 0) -> list[R]:
    return [read_at(f"{what} {number}", how, each) for number, each in enumerate(given, first)]


def as_json(data: Any) -> bytes:
    """JSON as it is sent; lone surrogates are escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")
