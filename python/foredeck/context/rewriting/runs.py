"""One text for a run of calls of which nothing but lines is left: which runs there are.

A folded result keeps the call that it answers, a reference line and a digest. Where steps in a row
have come to that, one text covers all of them, where the last one was. Every call comes back by its
handle, as before. In a turn that is long past what was said goes along, but for the question and
the last words; the turn comes back word for word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.arguments import args_display
from foredeck.context.digests import unheld_names
from foredeck.context.messages.items import Item, text_block
from foredeck.context.messages.wires import Wire
from foredeck.context.plan.ops import (
    FOLDABLE_ARGUMENT_CHARS,
    REASONING,
    MessageSpan,
    Op,
    Say,
    apply_recipe,
)
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.policies.policy import UseRule
from foredeck.context.rebase import first_mutable, is_immutable
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rewriting.replacing import cover
from foredeck.context.state.chat import turn_of
from foredeck.context.wording import handle
from foredeck.model.documents import chat_id
from foredeck.model.messages import exchanges, strings_in
from foredeck.model.names import identifiers
from foredeck.model.quoting import one_line, word
from foredeck.sources.tool_calls import WRITERS, path_argument, written_texts

SAID_CHARS = 300
"""A step that says more than this beside its calls stays as it is."""

SHORT_CHARS = 200
"""A result that is no longer is never folded, and goes with the rest of a run."""

FOLDED = frozenset({"reference", "same"})
"""Forms of results that show nothing by themselves."""

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


@dataclass(frozen=True, slots=True)
class FoldedRun:
    """Messages in a row, all of which leave; the first, and the one after the last."""

    first: int
    until: int
    said: bool = False
    """Whether what was said in a turn goes along."""

    @property
    def messages(self) -> range:
        """Their indexes."""
        return range(self.first, self.until)


def fold_runs(context: RenderContext, rule: UseRule, wire: Wire, start: int) -> list[FoldedRun]:
    """Cover by a text each run from message `start` on that saves something by it. Returns
    these runs; one that was a text before and has grown is among them."""
    runs = list(find_runs(context, rule, wire, start)) if wire.lets_calls_change else []
    if not runs:
        return []
    gone = {index for run in runs for index in run.messages}
    held = context.names.in_view(context.plan, gone)
    folded: list[FoldedRun] = []
    for run in runs:
        before = sum(context.plan.chars[index] for index in run.messages)
        text, names = run_text(context, run, held, int(NAMED_SHARE * before))
        held |= names
        if before - len(text) >= context.min_saving_chars:
            say = Say("calls", [text_block(text)], MessageSpan(run.first, run.until))
            cover(context, say, run.messages)
            folded.append(run)
    return folded


def find_runs(context: RenderContext, rule: UseRule, wire: Wire, start: int) -> Iterator[FoldedRun]:
    """Steps in a row of which nothing but lines is left, from message `start` on; none that one
    text covers already."""
    covered = {*context.plan.runs}
    run: FoldedRun | None = None
    for step in (*_steps(context, rule, wire, start), None):
        if run is not None and step is not None:
            run = FoldedRun(run.first, step.until, run.said or step.said)
            continue
        if run is not None and (run.first, run.until) not in covered:
            yield run
        run = step


def _steps(
    context: RenderContext, rule: UseRule, wire: Wire, start: int
) -> Iterator[FoldedRun | None]:
    """Messages with what answers them, in their order: each as a run where all of that may go, else
    None. A run that is a text already is one step."""
    plan = context.plan
    items, runs, newest = plan.items, dict(plan.runs), plan.last_assistant()
    if not rule.runs_after:
        return
    # Only where bytes are rewritten anyway, and behind reasoning that has to stay.
    index = max(start, first_mutable(plan), plan.compacted[0])
    index = max([index, *(until for first, until in runs.items() if first < index)])
    last = _last_to_go(items, newest, rule.runs_after)
    # Edits that are so short that they never fold stay longer: what they wrote is what the next
    # edit may be of.
    last_edit = _last_to_go(items, newest, max(rule.runs_after, rule.edits_after))
    # In turns before this one what was said goes along.
    turn = 0
    if rule.turns_after:
        turn = items[_last_to_go(items, newest, max(rule.runs_after, rule.turns_after))].turn
    observed = {i for first, until in plan.observed.values() for i in range(first, until)}
    while index < last:
        said = 0 < items[index].turn < turn
        if index in runs:
            yield FoldedRun(index, runs[index], said)
            index = runs[index]
            continue
        group = next(exchanges(items, index, len(items)), [index])
        step = FoldedRun(index, group[-1] + 1, said)
        # A message of ours between them answers a call, or ends a turn.
        is_parted = any(at in plan.says for at in step.messages if at)
        stays = is_parted or not observed.isdisjoint(step.messages)
        stays = stays or len(group) < len(step.messages)
        stays = stays or (index >= last_edit and _has_short_edit(items[index]))
        yield step if not stays and _is_dead(context, wire, group, said=said) else None
        index = step.until


def _last_to_go(items: Sequence[Item], newest: int, calls: int) -> int:
    """The first message that stays, as one of the newest calls."""
    index = newest
    while calls > 1 and index > 0:
        index -= 1
        calls -= items[index].kind == "assistant" and not items[index].unsent
    return index


def _is_dead(context: RenderContext, wire: Wire, group: Sequence[int], *, said: bool) -> bool:
    """Whether nothing of an answer, with its calls and their results, is left but lines and short
    texts. `said`: whatever it says may go along."""
    asked, *results = group
    item, op = context.plan.items[asked], context.plan.ops[asked]
    if item.kind != "assistant" or item.unsent or len(results) != len(item.calls):
        return False
    is_sealed = item.signed and REASONING not in op.folded
    if is_sealed and not _may_lose_seals(context, wire, asked, said=said):
        return False
    if not said and (not item.calls or _said(item) > SAID_CHARS):
        return False
    if op.subject in context.sets.pins or not _is_folded(item, op, said=said):
        return False
    return all(_is_dead_result(context, index) for index in results)


def _may_lose_seals(context: RenderContext, wire: Wire, index: int, *, said: bool) -> bool:
    """Whether sealed reasoning may leave with its message: where it leaves anyway once bytes before
    it change, and in turns long past where it binds nothing."""
    plan = context.plan
    if is_immutable(plan, index):
        return False
    return wire.thinking or (said and not plan.seals.binds(plan.items[index]))


def _said(item: Item) -> int:
    texts = (block.get("text") or "" for block in item.blocks if block.get("type") == "text")
    return sum(map(len, texts))


def _is_folded(item: Item, op: Op, *, said: bool) -> bool:
    """Whether none of its long arguments is left, nor thinking that will not be left out at this
    rebase; `said`: its long texts do not count."""
    left = {piece.kind for piece in pieces_of(item) if piece.slot not in op.folded}
    return not left - ({"thinking"} if item.signed else set()) - ({"answer"} if said else set())


def _has_short_edit(item: Item) -> bool:
    """Whether one of its calls writes to a file what is too short to fold."""
    calls = (call for call in item.calls if call.tool in WRITERS)
    written = (text for call in calls for text in written_texts(call.arguments))
    return any(len(text) <= FOLDABLE_ARGUMENT_CHARS for text in written)


def _is_dead_result(context: RenderContext, index: int) -> bool:
    item, op = context.plan.items[index], context.plan.ops[index]
    if op.subject in context.sets.pins:
        return False
    is_short = context.plan.chars[index] <= SHORT_CHARS and item.chars <= SHORT_CHARS
    return op.form in FOLDED or (is_short and op.form in ("host", "full", "note"))


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
    context: RenderContext, run: FoldedRun, held: Set[str], room: int
) -> tuple[str, frozenset[str]]:
    """The text in place of a run, and the names that can be read in it.

    `held`: names that can be read elsewhere. `room`: characters for names that cannot.
    """
    items = [context.plan.items[index] for index in run.messages]
    calls = sum(item.kind == "result" for item in items)
    lines = [run_heading(calls, _whole_turn(context, items[0]) if run.said else None)]
    lines += _listed(context, run.messages)
    if run.said and (last := _last_words(items)):
        lines.append(last_words(last))
    text = "\n".join(lines)
    shown, names_here = identifiers(text), _in_view(context, run.messages)
    names = unheld_names(names_here, held, min(NAMED_CHARS, room), named_before=shown)
    return (f"{text}\n{names}", shown | identifiers(names)) if names else (text, shown)


def _whole_turn(context: RenderContext, item: Item) -> tuple[int, int] | None:
    """The chat's handle and the number of an item's turn: by these `activate` shows it word for
    word. None where the chat is not stored."""
    chat = context.objects.workspace.head(chat_id(context.objects.info.id))
    if chat is None:
        return None
    return context.objects.see_head(chat).ordinal, turn_of(context.chat, item)


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
        joined = [", ".join(lines)] if of_paths else lines
        yield from (f"{word(tool)} {line}" for line in joined)


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
    # A read went out under the handle of its file.
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
    fact = lines[1].strip() if lines[1:] and not lines[1].startswith("names:") else ""
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


def run_heading(calls: int, whole: tuple[int, int] | None = None) -> str:
    """First line of the text of calls in a row. `whole`: handle of the chat and number of the turn,
    where what was said in it is folded, too."""
    counted = "1 call" if calls == 1 else f"{calls} calls"
    if whole is None:
        return f"[foredeck] {counted}, folded:"
    chat, turn = whole
    what = f"Turn {turn}, folded: {counted}." if calls else f"Turn {turn}, folded."
    return f'[foredeck] {what} activate "@{chat} turn {turn}" shows it in full.'


def last_words(text: str) -> str:
    """The answer that ended a turn, cut short."""
    return f"answer: {one_line(text)}"
