"""The model's tools activate, deactivate, pin and unpin.

The decision stays in the result's details, and holds wherever the result is in a list.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.context import wording
from foredeck.context.intake.file_changes import PATIENCE_S, look_again, read_listed, renamed
from foredeck.context.messages.items import Block, image_block
from foredeck.context.plan.ops import apply_recipe
from foredeck.context.rendering import shown_lines, shown_name, shown_text
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.facilities import RecordReader
from foredeck.context.state.handles import Wanted, resolve_name
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.context.tools.describing import SHOWS, described, read_record, refers
from foredeck.context.tools.versions import Content, wanted_content
from foredeck.errors import ToolError
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.projects import checkout_of
from foredeck.sources.snapshots import is_unread

SHOWING = ("activate", "pin")
"""Tools that show content."""

MAX_CHARS = 50_000
"""Most characters per activation."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    text: str
    decision: dict[str, Any]
    images: list[Block] = field(default_factory=list)
    """Blocks after the text."""


class ContextTools:
    """The four tools in one session."""

    def __init__(
        self, objects: Objects, chat: Chat, inbox: Inbox, readers: Sequence[RecordReader]
    ) -> None:
        self._objects, self._chat, self._inbox = objects, chat, inbox
        self._readers = readers
        chat.take_up_newest()
        self._tools: dict[str, Callable[[Wanted], ToolAnswer]] = {
            "activate": self._activate,
            "deactivate": self._deactivate,
            "pin": self._pin,
            "unpin": self._unpin,
        }

    def run(self, tool: str, arguments: dict[str, Any], call_id: str) -> ToolAnswer:
        """Runs one call. Raises `ToolError` with a text for the model."""
        if tool not in self._tools:
            raise ToolError(f"foredeck has no tool {tool!r}.")
        show = _show(tool, arguments)
        if tool == "activate" and (
            text := read_record(self._objects.store, self._readers, _id(tool, arguments))
        ):
            # It has no handle: the result itself is all that there is to keep in view.
            return ToolAnswer(text[:MAX_CHARS], {"op": "none"})
        target = resolve_name(self._objects, _id(tool, arguments), beyond=tool in SHOWING)
        if show == "content" and not refers(self._objects, target):
            answer = self._tools[tool](target)
        else:
            text = described(self._objects, target, show, MAX_CHARS)
            answer = ToolAnswer(text, _decision("list", target.entry))
        if not self._objects.workspace.empty:
            # The handle in the decision must outlive a crash.
            self._objects.workspace.commit()
        self._chat.branch.sets.apply(answer.decision)
        # The next call finds the result in the list, and must not carry the decision out again.
        self._chat.branch.applied.add(call_id)
        return answer

    def reads(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """The file that a call would show although no `read` has; None for a failing call."""
        try:
            if tool not in SHOWING or _show(tool, arguments) != "content":
                return None
            entry = resolve_name(self._objects, _id(tool, arguments), beyond=True).entry
        except ToolError:
            return None
        if entry.type != "file" or self._was_read(entry):
            return None
        head = self._objects.workspace.head(entry.object)
        source = {} if head is None else head.fields.get("source") or {}
        # A file as of a commit is asked about as the file that is checked out.
        if source.get("type") != "git":
            return self._objects.name_of(entry)
        cwd = self._objects.info.cwd
        top = checkout_of(cwd, FilesystemMap("", cwd=cwd)) or cwd
        return posixpath.join(top, str(source.get("path") or ""))

    def _was_read(self, entry: Entry) -> bool:
        plan = self._chat.branch.plan
        holders = (plan.items[n] for n in plan.holders.get(entry.ordinal, ()))
        return any(item.tool == "read" and not item.failed for item in holders)

    def _activate(self, wanted: Wanted) -> ToolAnswer:
        if wanted.is_part and wanted.entry.type == "chat":
            return self._part("activate", wanted, wanted_content(self._objects, self._chat, wanted))
        self._refuse_locked(wanted.entry, "is always in view")
        return self._bring("activate", wanted)

    def _pin(self, wanted: Wanted) -> ToolAnswer:
        self._refuse_locked(wanted.entry, "is always in view")
        if wanted.version is not None or wanted.call is not None or wanted.is_part:
            raise ToolError("Only the newest version can be pinned, and as a whole: name it alone.")
        return self._bring("pin", wanted)

    def _deactivate(self, wanted: Wanted) -> ToolAnswer:
        entry, active = wanted.entry, self._chat.branch.sets.active
        if entry.type != "chat" or entry.ordinal not in active:
            # Of a chat only the turns that were activated can go.
            self._refuse_locked(entry, "cannot be deactivated")
        decision = _decision("deactivate", entry)
        if entry.ordinal in active:
            return ToolAnswer(wording.deactivated(entry.ordinal), decision)
        return ToolAnswer(wording.out_of_pool(entry.ordinal), decision)

    def _unpin(self, wanted: Wanted) -> ToolAnswer:
        entry = wanted.entry
        self._refuse_locked(entry, "is not pinned, but always in view")
        if entry.ordinal not in self._chat.branch.sets.pins:
            return ToolAnswer(wording.not_pinned(entry.ordinal), _decision("none", entry))
        return ToolAnswer(wording.unpinned(entry.ordinal), _decision("unpin", entry))

    def _bring(self, op: str, wanted: Wanted) -> ToolAnswer:
        entry = wanted.entry
        if entry.type == "file":
            # The watcher may lag behind: the model gets what is on the disk now, if it has settled.
            look_again(self._objects, self._inbox, [entry.object], PATIENCE_S)
            self._read_if_listed(entry)
        content = wanted_content(self._objects, self._chat, wanted)
        if wanted.is_part and content.text is not None:
            return self._part(op, wanted, content)
        if content.images:
            return self._with_images(op, entry, content)
        if content.text is None:
            text = wording.no_content(entry.ordinal, content.why)
            # What is asked of a renamed file is for its new handle. What has no text is listed, and
            # cannot be active.
            change = "list" if renamed(self._objects, entry) is None else "none"
            return ToolAnswer(text, _decision(change, entry, form="note"))
        arguments = folded_arguments(self._objects, self._chat.branch, entry)
        if arguments is not None:
            text = wording.whole_call(arguments, content.text)[:MAX_CHARS]
            # Without a hash: what is shown is more than the content, and the same as nothing else.
            partial = replace(content, text_hash=None)
            return ToolAnswer(text, _decision(op, entry, partial, form="full"))
        if self._visible(entry, content):
            text = wording.already_visible(self._name(entry, content), pinned=op == "pin")
            return ToolAnswer(text, _decision(op, entry, content, form="visible"))
        if len(content.text) > MAX_CHARS:
            return self._beginning(op, entry, content)
        text = content.text or wording.empty(entry.ordinal)
        return ToolAnswer(text, _decision(op, entry, content, form="full"))

    def _with_images(self, op: str, entry: Entry, content: Content) -> ToolAnswer:
        plan = self._chat.branch.plan
        for index in plan.holders.get(entry.ordinal, ()):
            in_view = apply_recipe(plan.ops[index].blocks, plan.items[index].blocks)
            if sum(block.get("type") == "image" for block in in_view) >= len(content.images):
                text = wording.already_visible(self._name(entry, content), pinned=op == "pin")
                return ToolAnswer(text, _decision(op, entry, content, form="visible"))
        blocks = [image_block(self._objects.store.blob(address)) for address in content.images]
        images = [block for block in blocks if block is not None]
        text = (content.text or "")[:MAX_CHARS]
        lines = [text] if text else []
        if len(images) < len(blocks):
            lines.append(wording.images_unknown(entry.ordinal, len(blocks) - len(images)))
        lines = lines or [wording.handle(entry.ordinal)]
        return ToolAnswer("\n".join(lines), _decision(op, entry, content, form="full"), images)

    def _read_if_listed(self, entry: Entry) -> None:
        head = self._objects.workspace.head(entry.object)
        if head is not None and is_unread(head.fields):
            read_listed(self._objects, self._objects.name_of(entry))

    def _part(self, op: str, wanted: Wanted, content: Content) -> ToolAnswer:
        whole = content.text or ""
        text = whole[:MAX_CHARS]
        if len(whole) > len(text):
            text += wording.cut_part(len(text), len(whole))
        partial = replace(content, text_hash=None)
        return ToolAnswer(text, _decision(op, wanted.entry, partial, form="full"))

    def _beginning(self, op: str, entry: Entry, content: Content) -> ToolAnswer:
        """The first lines of a long text, unless a read shows them."""
        whole = content.text or ""
        # At the end of a line, unless one line alone is as long.
        end = whole.rfind("\n", 0, MAX_CHARS) + 1 or MAX_CHARS
        newest = content.version == entry.newest.version
        name = wording.handle(entry.ordinal, None if newest else content.version)
        rest = wording.rest_of(name, end, len(whole))
        visible = self._shown_from_the_start(entry, content)
        if visible >= end:
            rest = wording.rest_of(name, visible, len(whole))
            text = wording.beginning_visible(name, visible, len(whole), rest)
            return ToolAnswer(text, _decision(op, entry, form="note"))
        text = whole[:end] + wording.cut_short(end, len(whole), rest)
        partial = replace(content, text_hash=None)
        return ToolAnswer(text, _decision(op, entry, partial, form="full"))

    def _shown_from_the_start(self, entry: Entry, content: Content) -> int:
        plan = self._chat.branch.plan
        length = 0
        for index in plan.holders.get(entry.ordinal, ()):
            if plan.ops[index].version == content.version:
                lines = shown_lines(plan.items[index], shown_text(plan, index))
                if lines and (content.text or "").startswith(lines):
                    length = max(length, len(lines))
        return length

    def _visible(self, entry: Entry, content: Content) -> bool:
        plan, provisional = self._chat.branch.plan, self._chat.branch.shown
        holders = plan.holders.get(entry.ordinal, ())
        hashes = {plan.ops[index].text_hash for index in holders}
        return content.text_hash in hashes or (entry.ordinal, content.text_hash) in (
            provisional or ()
        )

    def _name(self, entry: Entry, content: Content) -> str:
        plan = self._chat.branch.plan
        for index in reversed(plan.holders.get(entry.ordinal, [])):
            op = plan.ops[index]
            if op.text_hash == content.text_hash:
                if op.blocks is not None and content.version < entry.newest.version:
                    return wording.handle(entry.ordinal, content.version)
                return shown_name(plan, index, entry.ordinal, self._objects.info.cwd)
        return wording.handle(entry.ordinal)

    def _refuse_locked(self, entry: Entry, why: str) -> None:
        head = self._objects.workspace.head(entry.object)
        if head is not None and head.fields.get("locked") and not self._is_elsewhere(entry):
            raise ToolError(f"@{entry.ordinal} is locked: the {entry.type} {why}.")

    def _is_elsewhere(self, entry: Entry) -> bool:
        ours = self._objects.info.is_always_in_view(entry.object)
        return entry.type in ("chat", "system_prompt") and not ours


def _id(tool: str, arguments: dict[str, Any]) -> str:
    name = arguments.get("id")
    if isinstance(name, int) and not isinstance(name, bool):
        return f"@{name}"
    if not isinstance(name, str):
        raise ToolError(f'{tool} needs "id": a handle such as @12, a path, or a nickname.')
    return name


def _show(tool: str, arguments: dict[str, Any]) -> str:
    """The content, unless `show` says otherwise."""
    show = arguments.get("show") if tool == "activate" else None
    if show in (None, "", "content"):
        return "content"
    if show not in SHOWS:
        raise ToolError(f'"show" is one of {", ".join(SHOWS)}, not {show!r}.')
    return str(show)


def folded_arguments(objects: Objects, branch: Branch, entry: Entry) -> dict[str, Any] | None:
    plan = branch.plan
    for op, item in zip(plan.ops, plan.items, strict=True):
        for call in item.calls if op.folded else ():
            if objects.index.by_label.get(call.id) == entry.ordinal:
                return call.arguments
    return None


def _decision(
    op: str, entry: Entry, content: Content | None = None, *, form: str = "note"
) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "op": op,
        "ordinal": entry.ordinal,
        "object": entry.object,
        "form": form,
    }
    if content is not None:
        decision |= {"version": content.version, "text_hash": content.text_hash}
    return decision
