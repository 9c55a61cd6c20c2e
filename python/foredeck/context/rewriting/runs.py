"""One text for a run of calls of which only lines are left.

In a turn long past, what was said goes too, except the question and the last words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.digests import unheld_names
from foredeck.context.messages.items import Item, args_display, text_block
from foredeck.context.plan.ops import (
    FOLDABLE_ARGUMENT_CHARS,
    REASONING,
    MessageSpan,
    Op,
    Say,
    apply_recipe,
)
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.policies.policy import Rules
from foredeck.context.rebase import first_mutable, is_immutable
from foredeck.context.rendering import RenderContext
from foredeck.context.rewriting.replacing import cover
from foredeck.context.state.chat import turn_of
from foredeck.context.wording import handle
from foredeck.model.documents import chat_id
from foredeck.model.messages import exchanges, strings_in
from foredeck.model.names import identifiers
from foredeck.model.quoting import one_line, word
from foredeck.sources.tool_calls import WRITERS, path_argument, written_texts

SAID_CHARS = 300

SHORT_CHARS = 200
"""A result this short never folds, and goes with its run."""

FOLDED = frozenset({"reference", "same"})
"""Forms of results that show nothing by themselves."""

NAMED_SHARE = 0.3

NAMED_CHARS = 2000
"""And the most in any case."""

PAST_NAMED_CHARS = 500
"""The same for a turn long past."""

COMMANDS = 3
"""Of a turn long past, the newest commands that are spelled out; older ones are handles."""

SHOWN_CHARS = 60
"""Of a call's arguments."""

SAID_LAST_CHARS = 280
"""Characters kept of the answer that ended the turn."""

FACT_CHARS = 100
"""Of a failed call's outcome."""


@dataclass(frozen=True, slots=True)
class FoldedRun:
    """The first message, and the one after the last; all leave."""

    first: int
    until: int
    said: bool = False
    """Whether what was said goes along."""

    @property
    def messages(self) -> range:
        return range(self.first, self.until)


def fold_runs(context: RenderContext, rules: Rules, wire: Wire, start: int) -> list[FoldedRun]:
    """Replaces each run from `start` on that saves something."""
    runs = list(find_runs(context, rules, wire, start)) if wire.lets_calls_change else []
    if not runs:
        return []
    gone = {index for run in runs for index in run.messages}
    names_in_view = context.names.in_view(context.plan, gone)
    folded: list[FoldedRun] = []
    for run in runs:
        before = sum(context.plan.chars[index] for index in run.messages)
        text, names = run_text(context, run, names_in_view, int(NAMED_SHARE * before))
        names_in_view |= names
        if before - len(text) >= context.min_saving_chars:
            say = Say("calls", [text_block(text)], MessageSpan(run.first, run.until))
            cover(context, say, run.messages)
            folded.append(run)
    return folded


def find_runs(context: RenderContext, rules: Rules, wire: Wire, start: int) -> Iterator[FoldedRun]:
    """Runs of folded steps that no text covers yet."""
    covered = {*context.plan.runs}
    run: FoldedRun | None = None
    for step in (*_steps(context, rules, wire, start), None):
        if run is not None and step is not None:
            run = FoldedRun(run.first, step.until, run.said or step.said)
            continue
        if run is not None and (run.first, run.until) not in covered:
            yield run
        run = step


def _steps(
    context: RenderContext, rules: Rules, wire: Wire, start: int
) -> Iterator[FoldedRun | None]:
    plan = context.plan
    items, runs, newest = plan.items, dict(plan.runs), plan.last_assistant()
    if not rules.runs_after:
        return
    # Only where bytes are rewritten anyway, and behind reasoning that has to stay.
    index = max(start, first_mutable(plan), plan.compacted[0])
    index = max([index, *(until for first, until in runs.items() if first < index)])
    last = _last_to_go(items, newest, rules.runs_after)
    # Edits that are so short that they never fold stay longer: what they wrote is what the next
    # edit may be of.
    last_edit = _last_to_go(items, newest, max(rules.runs_after, rules.edits_after))
    # In turns before this one what was said goes along.
    turn = 0
    if rules.turns_after:
        turn = items[_last_to_go(items, newest, max(rules.runs_after, rules.turns_after))].turn
    observed = {i for first, until in plan.observed.values() for i in range(first, until)}
    while index < last:
        is_past = 0 < items[index].turn < turn
        if index in runs:
            yield FoldedRun(index, runs[index], is_past)
            index = runs[index]
            continue
        group = next(exchanges(items, index, len(items)), [index])
        step = FoldedRun(index, group[-1] + 1, is_past)
        # A message of ours between them answers a call, or ends a turn.
        is_parted = any(at in plan.says for at in step.messages if at)
        stays = is_parted or not observed.isdisjoint(step.messages)
        stays = stays or len(group) < len(step.messages)
        stays = stays or (index >= last_edit and _has_short_edit(items[index]))
        yield step if not stays and _is_dead(context, wire, group, said=is_past) else None
        index = step.until


def _last_to_go(items: Sequence[Item], newest: int, calls: int) -> int:
    index = newest
    while calls > 1 and index > 0:
        index -= 1
        calls -= items[index].kind == "assistant" and not items[index].unsent
    return index


def _is_dead(context: RenderContext, wire: Wire, group: Sequence[int], *, said: bool) -> bool:
    """Whether only lines and short texts are left; `said`: texts may go too."""
    answer, *results = group
    item, op = context.plan.items[answer], context.plan.ops[answer]
    if item.kind != "assistant" or item.unsent or len(results) != len(item.calls):
        return False
    is_sealed = item.signed and REASONING not in op.folded
    if is_sealed and not _may_lose_seals(context, wire, answer, said=said):
        return False
    if not said and (not item.calls or _said(item) > SAID_CHARS):
        return False
    if op.subject in context.sets.pins or not _is_folded(item, op, said=said):
        return False
    return all(_is_dead_result(context, index) for index in results)


def _may_lose_seals(context: RenderContext, wire: Wire, index: int, *, said: bool) -> bool:
    """Whether sealed reasoning may leave: it does anyway, or binds nothing any more."""
    plan = context.plan
    if is_immutable(plan, index):
        return False
    return wire.thinking or (said and not plan.seals.binds(plan.items[index]))


def _said(item: Item) -> int:
    texts = (block.get("text") or "" for block in item.blocks if block.get("type") == "text")
    return sum(map(len, texts))


def _is_folded(item: Item, op: Op, *, said: bool) -> bool:
    """Whether all of it is folded; with `said`, long texts do not count."""
    kinds = {piece.kind for piece in pieces_of(item) if piece.slot not in op.folded}
    return not kinds - ({"thinking"} if item.signed else set()) - ({"answer"} if said else set())


def _has_short_edit(item: Item) -> bool:
    calls = (call for call in item.calls if call.tool in WRITERS)
    texts = (text for call in calls for text in written_texts(call.arguments))
    return any(len(text) <= FOLDABLE_ARGUMENT_CHARS for text in texts)


def _is_dead_result(context: RenderContext, index: int) -> bool:
    item, op = context.plan.items[index], context.plan.ops[index]
    if op.subject in context.sets.pins:
        return False
    is_short = context.plan.chars[index] <= SHORT_CHARS and item.chars <= SHORT_CHARS
    return op.form in FOLDED or (is_short and op.form in ("host", "full", "note"))


@dataclass(slots=True)
class _Called:
    handles: list[str] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    fact: str = ""

    def line(self, shown: str) -> str:
        """`@12 @17 npm test (fail, ok)`."""
        note = ", ".join("fail" if failed else "ok" for failed in self.failed)
        if not any(self.failed):
            note = f"x{len(self.failed)}" if len(self.failed) > 1 else ""
        elif self.failed[-1] and self.fact:
            note += f": {self.fact}"
        return " ".join([*self.handles, one_line(shown), *([f"({note})"] if note else [])])


def run_text(
    context: RenderContext, run: FoldedRun, held: Set[str], room: int
) -> tuple[str, frozenset[str]]:
    """The text in place of a run, and the names in it; `held` ones are readable elsewhere."""
    items = [context.plan.items[index] for index in run.messages]
    calls = sum(item.kind == "result" for item in items)
    lines = [run_heading(calls, _whole_turn(context, items[0]) if run.said else None)]
    lines += _listed(context, run.messages, COMMANDS if run.said else len(items))
    lines += _described(context, run.messages)
    if run.said and (last := _last_words(items)):
        lines.append(last_words(last))
    text = "\n".join(lines)
    names_in_text, names_here = identifiers(text), _in_view(context, run.messages)
    most = PAST_NAMED_CHARS if run.said else NAMED_CHARS
    names = unheld_names(names_here, held, min(most, room), named_before=names_in_text)
    return (
        (f"{text}\n{names}", names_in_text | identifiers(names)) if names else (text, names_in_text)
    )


def _whole_turn(context: RenderContext, item: Item) -> tuple[int, int] | None:
    """The chat's handle and the turn; None if not stored."""
    chat = context.objects.workspace.head(chat_id(context.objects.info.id))
    if chat is None:
        return None
    return context.objects.see_head(chat).ordinal, turn_of(context.chat, item)


def _last_words(items: Sequence[Item]) -> str:
    last = items[-1]
    if last.kind != "assistant" or last.calls:
        return ""
    text = " ".join(" ".join(str(block.get("text") or "") for block in last.blocks).split())
    return text if len(text) <= SAID_LAST_CHARS else text[: SAID_LAST_CHARS - 1] + "…"


def _listed(context: RenderContext, messages: Sequence[int], spelled: int) -> Iterator[str]:
    """A line per tool that works on a path, and per other call, of which the newest `spelled` are
    spelled out."""
    tools: dict[tuple[str, bool], dict[str, _Called]] = {}
    for index in messages:
        item, op = context.plan.items[index], context.plan.ops[index]
        if item.kind == "result":
            path = path_argument(item.arguments)
            calls = tools.setdefault((item.tool, bool(path)), {})
            _add(calls, {"path": path} if path else item.arguments, context, item, op)
    for (tool, of_paths), calls in tools.items():
        lines = [called.line(arguments_text) for arguments_text, called in calls.items()]
        if of_paths:
            yield f"{word(tool)} {', '.join(lines)}"
            continue
        older = list(calls.values())[: max(0, len(lines) - spelled)]
        if handles := " ".join(handle for called in older for handle in called.handles):
            yield f"{word(tool)} {handles}"
        yield from (f"{word(tool)} {line}" for line in lines[len(older) :])


def _add(
    calls: dict[str, _Called],
    arguments: Mapping[str, Any],
    context: RenderContext,
    item: Item,
    op: Op,
) -> None:
    text = args_display(arguments, context.cwd)
    text = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    called = calls.setdefault(text, _Called())
    label = _label(context, item, op)
    if label is not None and handle(label) not in called.handles:
        called.handles.append(handle(label))
    called.failed.append(item.failed)
    called.fact = _fact(op)


def _label(context: RenderContext, item: Item, op: Op) -> int | None:
    # A read went out under the handle of its file.
    return op.subject if item.tool == "read" else context.label(item.call_id) or op.subject


def _described(context: RenderContext, messages: Sequence[int]) -> Iterator[str]:
    plan = context.plan
    results = [index for index in messages if plan.items[index].kind == "result"]
    labels = [_label(context, plan.items[index], plan.ops[index]) for index in results]
    for ordinal in dict.fromkeys(label for label in labels if label is not None):
        if description := context.said_of(ordinal):
            yield f"{handle(ordinal)}: {description}"


def _fact(op: Op) -> str:
    if op.form != "reference" or not op.blocks:
        return ""
    lines = str(op.blocks[-1].get("text") or "").split("\n")
    fact = lines[1].strip() if lines[1:] and not lines[1].startswith("names:") else ""
    return fact if len(fact) <= FACT_CHARS else fact[: FACT_CHARS - 1] + "…"


def _in_view(context: RenderContext, messages: Sequence[int]) -> str:
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


def run_heading(calls: int, whole: tuple[int, int] | None = None) -> str:
    """`whole`: chat handle and turn, if what was said folds too."""
    counted = "1 call" if calls == 1 else f"{calls} calls"
    if whole is None:
        return f"[foredeck] {counted}, folded:"
    chat, turn = whole
    what = f"Turn {turn}, folded: {counted}." if calls else f"Turn {turn}, folded."
    return f'[foredeck] {what} activate "@{chat} turn {turn}" shows it in full.'


def last_words(text: str) -> str:
    """The answer that ended a turn, cut short."""
    return f"answer: {one_line(text)}"
