"""What a model wrote as a tool's input, read leniently: other names for a field, numbers as text,
one value where a list is meant. What cannot be read is refused with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from foredeck.errors import ToolError
from foredeck.model.tasks import CloseReason, Relation, TaskType

T = TypeVar("T", bound=str)

LONGEST_TITLE, LONGEST_TEXT = 500, 20_000
MOST_LABELS, LONGEST_LABEL = 20, 60
TYPES: Sequence[TaskType] = get_args(TaskType)
REASONS: Sequence[CloseReason] = get_args(CloseReason)
RELATIONS: Sequence[Relation] = get_args(Relation)

_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0", "remove"})
_USUAL, _LOWEST = 2, 4
"""Priorities: of most tasks, and of what can wait longest."""
_OTHER_WORDS = {
    "done": "completed",
    "complete": "completed",
    "fixed": "completed",
    "won't fix": "wontfix",
    "cancelled": "wontfix",
    "blocked-by": "blocks",
    "blocked_by": "blocks",
    "depends": "blocks",
    "parent": "parent-child",
    "parent_child": "parent-child",
    "child": "parent-child",
    "duplicate-of": "duplicates",
    "relates": "related",
}
"""Words that models use for those of a choice."""
_ALSO = {
    "id": ("taskId", "task_id", "task"),
    "dependsOn": ("depends_on", "dependsOnId", "blockedBy"),
    "type": ("relation", "depType"),
    "messageId": ("message_id", "message", "handle", "target"),
    "includeMessages": ("include_messages",),
}
"""Names that models use for a field."""


class ToolInput:
    """The fields of one tool call."""

    def __init__(self, tool: str, fields: Mapping[str, Any]) -> None:
        self._tool = tool
        self._fields = fields

    def action(self, actions: Sequence[str]) -> str:
        """Which action is asked for. Raises `ToolError`."""
        action = str(self._fields.get("action") or "").strip().lower()
        if action not in actions:
            asked = f"no action {action!r}" if action else "an action is needed"
            raise ToolError(f"{self._tool}: {asked}. Actions: {', '.join(actions)}.")
        return action

    def has(self, name: str) -> bool:
        """Whether a field is given."""
        return self._value(name) is not None

    def text(self, name: str, *, limit: int = LONGEST_TEXT) -> str | None:
        """A text, None where there is none. Raises `ToolError` where it is too long."""
        value = self._value(name)
        if value is None:
            return None
        text = str(value).strip()
        if len(text) > limit:
            raise ToolError(f"{name} has {len(text)} characters; {limit} are allowed.")
        return text or None

    def needed(self, name: str, example: str, *, limit: int = LONGEST_TEXT) -> str:
        """As `text`, of a field that must be there. `example` shows a whole input."""
        text = self.text(name, limit=limit)
        if text is None:
            action = self._fields.get("action") or self._tool
            raise ToolError(f"{action} needs {name}: {example}")
        return text

    def title(self, example: str) -> str:
        """The title: one line."""
        return " ".join(self.needed("title", example, limit=LONGEST_TITLE).split())

    def number(self, name: str, default: int, most: int) -> int:
        """A number from 1 to `most`; larger ones count as that."""
        value = self._value(name)
        try:
            number = default if value is None else int(value)
        except (TypeError, ValueError):
            raise ToolError(f"{name} is a number, not {value!r}.") from None
        return min(max(number, 1), most)

    def flag(self, name: str, *, default: bool) -> bool:
        """A yes or no."""
        value = self._value(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        text = str(value).strip().lower()
        if text not in _YES | _NO:
            raise ToolError(f"{name} is true or false, not {value!r}.")
        return text in _YES

    def priority(self) -> int:
        """A priority, `1` or `P1`; the usual one where none is given."""
        value = self._value("priority")
        if value is None:
            return _USUAL
        text = str(value).strip().lower().removeprefix("p").removesuffix(".0")
        if not text.isdecimal() or int(text) > _LOWEST:
            raise ToolError(f"priority is 0 (most urgent) to {_LOWEST}, not {value!r}.")
        return int(text)

    def labels(self) -> tuple[str, ...]:
        """Labels, without their `#`, each once."""
        labels = tuple(dict.fromkeys(t.lstrip("#") for t in self.texts("labels")))
        if len(labels) > MOST_LABELS or any(len(label) > LONGEST_LABEL for label in labels):
            raise ToolError(f"labels: {MOST_LABELS} at most, of {LONGEST_LABEL} characters each.")
        return tuple(" ".join(label.split()) for label in labels if label)

    def texts(self, name: str) -> list[str]:
        """A list of texts; one text may be several, with commas between."""
        value = self._value(name)
        if value is None:
            return []
        parts = value if isinstance(value, list) else str(value).split(",")
        return [text for part in parts if (text := str(part).strip())]

    def choice(self, name: str, choices: Sequence[T], default: T) -> T:
        """One of some words."""
        value = self._value(name)
        if value is None:
            return default
        word = str(value).strip().lower()
        word = _OTHER_WORDS.get(word, word)
        for choice in choices:
            if choice == word:
                return choice
        raise ToolError(f"{name} is one of {', '.join(choices)}, not {value!r}.")

    def _value(self, name: str) -> Any:
        for known in (name, *_ALSO.get(name, ())):
            value = self._fields.get(known)
            if value is not None and value != "":
                return value
        return None
