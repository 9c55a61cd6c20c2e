"""The text that covers a run of calls: what was called, how that went, what was said last, and
what nothing else names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.arguments import args_display
from foredeck.context.digests.names import unheld_names
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import Op, apply_recipe
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.stand_in_lines import last_words, run_heading
from foredeck.context.wording import handle
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers
from foredeck.model.quoting import one_line, word
from foredeck.sources.toolpaths import path_argument

NAMED_SHARE = 0.3
"""Of what a run still took, the most that its names may take."""

NAMED_CHARS = 2000
"""The most in any case, as of a digest."""

SHOWN_CHARS = 60
"""Of a call's arguments."""

SAID_LAST_CHARS = 280
"""Of the answer that ended a turn."""

FACT_CHARS = 100
"""Of what a failed call came to."""


WholeTurn = Callable[[Item], tuple[int, int] | None]
"""The chat's handle and the number of the user turn, by which `activate` shows it word for word."""


@dataclass(slots=True)
class _Called:
    """Calls of one tool with the same arguments."""

    handles: list[str] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    fact: str = ""
    """What the digest of the last one says first, where it failed."""

    def line(self, shown: str) -> str:
        """`@12 @17 npm test (fail, ok)`."""
        said = ", ".join("fail" if failed else "ok" for failed in self.failed)
        if not any(self.failed):
            said = f"x{len(self.failed)}" if len(self.failed) > 1 else ""
        elif self.failed[-1] and self.fact:
            said += f": {self.fact}"
        return " ".join([*self.handles, one_line(shown), *([f"({said})"] if said else [])])


def run_text(
    context: RenderContext,
    messages: Sequence[int],
    held: Set[str],
    room: int,
    whole_turn: WholeTurn | None,
) -> tuple[str, frozenset[str]]:
    """The text in place of these messages, and the names that can be read in it.

    `held`: names that can be read elsewhere. `room`: characters for names that cannot.
    `whole_turn`: by which name their turn comes back, where what was said goes along.
    """
    items = [context.plan.items[index] for index in messages]
    calls = sum(item.kind == "result" for item in items)
    lines = [run_heading(calls, whole_turn(items[0]) if whole_turn else None)]
    lines += _listed(context, messages)
    if whole_turn and (last := _last_words(items)):
        lines.append(last_words(last))
    text = "\n".join(lines)
    shown, told = identifiers(text), _in_view(context, messages)
    names = unheld_names(told, held, min(NAMED_CHARS, room), named_before=shown)
    return (f"{text}\n{names}", shown | identifiers(names)) if names else (text, shown)


def _last_words(items: Sequence[Item]) -> str:
    """The beginning of the answer that ends a turn, on one line; empty where none does."""
    last = items[-1]
    if last.kind != "assistant" or last.calls:
        return ""
    text = " ".join(" ".join(str(block.get("text") or "") for block in last.blocks).split())
    return text if len(text) <= SAID_LAST_CHARS else text[: SAID_LAST_CHARS - 1] + "…"


def _listed(context: RenderContext, messages: Sequence[int]) -> Iterator[str]:
    """A line for each tool that works on a path, and for each other call with its arguments."""
    tools: dict[tuple[str, bool], dict[str, _Called]] = {}
    for index in messages:
        item, op = context.plan.items[index], context.plan.ops[index]
        if item.kind == "result":
            path = path_argument(item.arguments)
            calls = tools.setdefault((item.tool, bool(path)), {})
            _add(calls, {"path": path} if path else item.arguments, context, item, op)
    for (tool, of_paths), calls in tools.items():
        lines = [called.line(shown) for shown, called in calls.items()]
        told = [", ".join(lines)] if of_paths else lines
        yield from (f"{word(tool)} {line}" for line in told)


def _add(
    calls: dict[str, _Called],
    arguments: Mapping[str, Any],
    context: RenderContext,
    item: Item,
    op: Op,
) -> None:
    """Count a call, given by its result, with those that were made like it."""
    shown = args_display(arguments, context.cwd)
    shown = shown if len(shown) <= SHOWN_CHARS else shown[: SHOWN_CHARS - 1] + "…"
    called = calls.setdefault(shown, _Called())
    # A read has the handle of its file, under which it stood.
    label = op.subject if item.tool == "read" else context.label(item.call_id) or op.subject
    if label is not None and handle(label) not in called.handles:
        called.handles.append(handle(label))
    called.failed.append(item.failed)
    called.fact = _fact(op)


def _fact(op: Op) -> str:
    """The first line of the digest of a folded result."""
    if op.form != "reference" or not op.blocks:
        return ""
    lines = str(op.blocks[-1].get("text") or "").split("\n")
    # Earlier versions did not quote it.
    fact = one_line(lines[1]).strip() if lines[1:] and not lines[1].startswith("names:") else ""
    return fact if len(fact) <= FACT_CHARS else fact[: FACT_CHARS - 1] + "…"


def _in_view(context: RenderContext, messages: Sequence[int]) -> str:
    """What these messages say now, but for reference lines."""
    texts: list[str] = []
    for index in messages:
        op, own = context.plan.ops[index], context.plan.items[index].blocks
        for block in apply_recipe(context.plan.recipe(index), own):
            if op.form == "reference":
                texts.append(str(block.get("text") or "").partition("\n")[2])
            elif block.get("type") in ("text", "toolCall"):
                texts += strings_in(block.get("arguments") or block.get("text"))
    folder = context.cwd.rstrip("/") + "/"
    text = "\n".join(texts)
    return text.replace(folder, "") if len(folder) > 1 else text
