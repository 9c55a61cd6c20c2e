"""A session for its user: objects, their states, and what fills the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from foredeck.context.messages.items import blocks_chars, relative_path
from foredeck.context.plan.ops import Op
from foredeck.context.plan.plan import Plan
from foredeck.context.rendering import described
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.descriptions import (
    Description,
    describe_object,
    give_nickname,
    nicknames,
)
from foredeck.context.state.gauge import plain_tokens, sent_tokens
from foredeck.context.state.handles import resolve_name
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.tools.versions import wanted_content
from foredeck.context.wording import handle, object_line
from foredeck.errors import ToolError
from foredeck.model.documents import Fields
from foredeck.model.figures import short_count
from foredeck.store.protocol import Head

IN_VIEW, FOLDED, PINNED = "in view", "folded", "pinned"
"""As every screen names them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A file with all its reads, a tool result, or a long text."""

    ordinal: int
    state: str
    chars: int
    """Characters in the prompt; of a folded object, those it would take."""
    what: str

    @property
    def name(self) -> str:
        return handle(self.ordinal)


def listed_objects(objects: Objects, branch: Branch) -> list[Row]:
    """Objects with content in the chat, newest first."""
    plan = branch.plan
    sizes: dict[int, int] = {}
    for op, item, chars in zip(plan.ops, plan.items, plan.chars, strict=True):
        if op.subject is None or not op.carries:
            continue
        so_far = sizes.get(op.subject, 0)
        if op.subject not in plan.holders:
            sizes[op.subject] = max(so_far, item.chars)
        else:
            sizes[op.subject] = so_far + (chars if op.shows else 0)
    entries = objects.index.entries.values()
    # One by one, the heads of a long session take tens of milliseconds, at each key that is typed.
    read = [e.object for e in entries if e.ordinal in sizes or e.type == "toolcall"]
    with objects.workspace.looked_up(read):
        names, nested = nicknames(objects.store), _nested(objects, sizes)
        ordinals = sorted(sizes, reverse=True)
        return [_row(objects, branch, n, sizes[n], names, nested) for n in ordinals]


def state_of(branch: Branch, ordinal: int) -> str:
    """Whether the model can read it, and whether it has to stay."""
    if ordinal not in branch.plan.holders and ordinal not in branch.sets.active:
        return FOLDED
    return PINNED if ordinal in branch.sets.pins else IN_VIEW


def counts(rows: Iterable[Row]) -> str:
    """`12 in view, 2 pinned, 30 folded`."""
    states = Counter(row.state for row in rows)
    return ", ".join(f"{states[state]} {state}" for state in (IN_VIEW, PINNED, FOLDED))


_LINES = frozenset({"reference", "same", "note"})

_LABELS = {
    "system": "system and tools",
    "ours": "foredeck",
    "chat": "chat",
    "results": IN_VIEW,
    "folded": FOLDED,
}

FREE = "free"

NOT_KNOWN = "What the model sees is known again once the next call has gone out."
"""After a restart of the engine, before its first call."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What fills the window at the newest call."""

    verdict: str
    shares: list[tuple[str, int]] = field(default_factory=list)
    """Tokens by kind, and free ones if the window is known."""
    rate: float = 0.0
    """Characters per token."""
    host_tokens: int = 0
    """What the host alone would send."""

    def tokens(self, chars: int) -> int:
        return int(chars / self.rate) if self.rate else 0

    def to_text(self) -> str:
        kinds = [(label, tokens) for label, tokens in self.shares if label != FREE]
        return ", ".join(f"{label} {short_count(tokens)}" for label, tokens in kinds)


def filling(chat: Chat) -> Filling:
    """The newest prompt by kind."""
    record = chat.branch_record
    if record is None and chat.log.newest:
        return Filling(NOT_KNOWN)
    if record is None or record.is_host:
        return Filling("No call has gone out with foredeck on this branch yet.")
    stats = record.stats
    total = sent_tokens(record)
    window = record.model.window
    about = "" if stats.reports else "about "
    verdict = f"The prompt has {about}{short_count(total)} tokens"
    if window:
        full = f"{about}{100 * total // window}% full"
        verdict = f"The window is {full}: {short_count(total)} of {short_count(window)} tokens"
    fill = Filling(f"{verdict}.", [], stats.rate, plain_tokens(record))
    chars = _chars_by_kind(chat.branch)
    chars["system"] = max(0, stats.chars_sent - chars.total())
    for kind, label in _LABELS.items():
        if chars[kind]:
            fill.shares.append((label, fill.tokens(chars[kind])))
    if window and total < window:
        fill.shares.append((FREE, window - total))
    return fill


def before_the_chat(branch: Branch) -> str:
    """The head as the model reads it."""
    head = branch.plan.head
    blocks = [] if head is None else head.blocks
    return "\n".join(str(block.get("text") or "") for block in blocks)


def _nested(objects: Objects, listed: Container[int]) -> Mapping[str, list[str]]:
    calls: dict[str, list[str]] = {}
    for entry in objects.index.entries.values():
        if entry.type != "toolcall" or entry.ordinal in listed:
            continue
        head = objects.workspace.head(entry.object)
        if head is not None and (parent := head.fields.get("parent_ref")):
            called = f"{handle(entry.ordinal)} {_what(objects, entry, head.fields)}"
            calls.setdefault(str(parent), []).append(called)
    return calls


def _row(
    objects: Objects,
    branch: Branch,
    ordinal: int,
    chars: int,
    names: Mapping[str, str],
    nested: Mapping[str, list[str]],
) -> Row:
    entry = objects.index.entries[ordinal]
    head = objects.workspace.head(entry.object)
    fields = {} if head is None else head.fields
    state, nickname = state_of(branch, ordinal), names.get(entry.object)
    what = _what(objects, entry, fields) + (f" ({nickname})" if nickname else "") + _gone(fields)
    if inside := nested.get(entry.object):
        what += f", which ran {', '.join(inside)}"
    if state == IN_VIEW and ordinal not in branch.sets.active:
        what += ", folds next"
    return Row(ordinal, state, chars, what)


def change_state(objects: Objects, branch: Branch, verb: str, arguments: str) -> str:
    """Carries out the user's `pin`, `unpin` or `fold`. Raises `ToolError`."""
    # The sets change at once, and the next call's record keeps that; the prompt changes when it is
    # rewritten next.
    if not arguments:
        raise ToolError(f"Say which object: /foredeck {verb} @12.")
    entry = resolve_name(objects, arguments).entry
    name, state, sets = handle(entry.ordinal), state_of(branch, entry.ordinal), branch.sets
    if objects.info.is_always_in_view(entry.object):
        raise ToolError(f"{name} is locked: the {entry.type} is always in view.")
    if entry.ordinal not in branch.plan.carried:
        raise ToolError(f"{name} is not in this chat.")
    if verb == "unpin":
        if entry.ordinal not in sets.pins:
            return f"{name} is not pinned."
        sets.unpin(entry.ordinal)
        return f"{name} is not pinned any more."
    if state == FOLDED:
        hint = "" if verb == "fold" else f" Ask the model to activate {name}, then pin it."
        return f"{name} is folded.{hint}"
    if verb == "pin":
        sets.pin(entry.ordinal)
        return f"{name} is pinned: it stays in view."
    sets.deactivate(entry.ordinal)
    return f"{name} folds when foredeck next rewrites the prompt."


def content_for_user(objects: Objects, chat: Chat, arguments: str) -> str:
    """The stored content for `/foredeck open @12`. Raises `ToolError`."""
    if not arguments:
        raise ToolError("Say which object: /foredeck open @12.")
    target = resolve_name(objects, arguments, beyond=True)
    content = wanted_content(objects, chat, target)
    if not objects.workspace.empty:
        # What another session has met has a handle here from now on.
        objects.workspace.commit()
    if content.text is None:
        why = "it is an image" if content.images else content.why
        raise ToolError(f"{handle(target.entry.ordinal)} cannot be shown: {why}.")
    return content.text or "(empty)"


def _what(objects: Objects, entry: Entry, fields: Fields) -> str:
    if entry.type == "file":
        return relative_path(objects.name_of(entry), objects.info.cwd)
    if entry.type == "user":
        return f"you: {fields.get('first_line')}"
    if entry.type == "toolcall":
        return f"{fields.get('tool')} {fields.get('args_display')}"
    return entry.label or entry.type.replace("_", " ")


def _gone(fields: Fields) -> str:
    if fields.get("moved_to"):
        return ", moved"
    return ", deleted" if fields.get("state") == "deleted" else ""


def name_object(objects: Objects, arguments: str) -> str:
    """A nickname, `@12 spec`, or short summary, `@12 What it is`; `@12` shows its line. Raises
    `ToolError`."""
    name, _, text = arguments.partition(" ")
    words = text.split()
    if not name or (len(words) == 1 and words[0].startswith("@")):
        raise ToolError("Usage: /foredeck name @12 [NICKNAME, or what it is, in a few words]")
    entry, head = _stored(objects, name)
    if len(words) == 1:
        new = give_nickname(objects.store, head, words[0])
        return f"@{entry.ordinal} is called {words[0]}{'' if new else ' already'}."
    if words:
        describe_object(objects.store, head, Description(short_summary=text))
    return object_line(entry.ordinal, described(objects, entry.ordinal))


def _stored(objects: Objects, name: str) -> tuple[Entry, Head]:
    entry = resolve_name(objects, name).entry
    head = objects.store.head(entry.object)
    if head is None:
        raise ToolError(f"@{entry.ordinal} is not stored.")
    return entry, head


def _chars_by_kind(branch: Branch) -> Counter[str]:
    plan = branch.plan
    chars: Counter[str] = Counter()
    for index, op in enumerate(plan.ops):
        if not plan.is_omitted(index):
            chars[_kind(plan, index, op)] += plan.chars[index]
    chars["ours"] += sum(blocks_chars(say.blocks) for say in plan.our_messages)
    return chars


def _kind(plan: Plan, index: int, op: Op) -> str:
    if op.form in _LINES:
        return "folded"
    return "results" if plan.items[index].kind == "result" else "chat"
