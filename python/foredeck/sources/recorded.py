"""Files as a recorded session reports them, without looking at the disk.

A successful `write` gives the whole file, so does a `read` that shows all lines, and an `edit`
changes what is known. Anything else only says that the file exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from foredeck.errors import ToolError
from foredeck.model.canonical import hash_text
from foredeck.model.documents import Document, FileDocument, Generator
from foredeck.model.sources import FilesystemSource
from foredeck.sources.filesystem import FilesystemMap, Location
from foredeck.sources.git import git_name, pointer
from foredeck.sources.snapshots import (
    NOTHING_PENDING,
    FileSnapshot,
    Known,
    Limits,
    Pending,
    Role,
    ToolEvent,
    changed,
    file_version,
    lookup,
    unchanged,
)
from foredeck.sources.tool_calls import apply_edits, edits_of, parse_read_range, touched_paths
from foredeck.store.protocol import Store

REPLACEMENT_SHARE = 20
"""A text with more than one replacement character in this many was made of binary data."""


_OBJECT_ID = re.compile("[0-9a-f]{64}")
_REPLACED = re.compile("[\ufffd\ud800-\udfff]")


class _Reported(NamedTuple):
    """What a recorded result says of a file's content."""

    state: str
    text: str | None = None


class FileSource:
    """What is known of files by what tools have reported. For a replay this is all; `DiskSource`
    looks at the disk, too, where it can.

    Not thread-safe. `cwd` falls back to the one of the filesystem map.
    """

    is_live: ClassVar[bool] = False
    """Whether tools run now and here, so that the disk shows what they did."""

    def __init__(
        self, store: Store, filesystems: FilesystemMap, limits: Limits | None = None
    ) -> None:
        self._store = store
        self._filesystems = filesystems
        self._limits = limits or Limits()

    def identify(self, path: str, cwd: str | None = None) -> tuple[str, FilesystemSource]:
        """Object id and source binding of the file that `path` names."""
        location = self._filesystems.locate(path, cwd, follow=False)
        return location.object_id, location.source

    def agent_path(self, source: FilesystemSource) -> str:
        """What the agent calls a known file; the path of the source where that is not known."""
        return self._filesystems.agent_path(source.filesystemId, source.path)

    def sight(
        self,
        path: str,
        role: Role,
        *,
        cwd: str | None = None,
        pending: Pending = NOTHING_PENDING,
        unasked: bool = False,
    ) -> FileSnapshot:
        """Look at one file. `read` and `written` take in its content, `listed` never does.

        `unasked`: no tool and no user has named the file to be read. Then one outside the project
        that was never read before stays unread, links resolved: its state is `OUTSIDE`.
        """
        del unasked  # nothing is read
        location = self._filesystems.locate(path, cwd, follow=False)
        known = lookup(self._store, [location.object_id], pending)[location.object_id]
        sighted = _name_only if role == "listed" else unchanged
        return sighted(location, role, known)

    def after_tool(self, event: ToolEvent) -> list[FileSnapshot]:
        """The files that a tool call touched, at most one snapshot each, the main one first.

        Paths that name no file are left out. For an event that failed, only files that are known
        already are read.
        """
        return self._told_by(event, NOTHING_PENDING)

    def recall(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        """As `after_tool`, for a tool that ran before the session could look, as far as the files
        are still as it left them."""
        return self._told_by(event, pending)

    def _told_by(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        """What a call's arguments and its result say of files."""
        touches = touched_paths(event, self._limits.discovered_paths)
        located = [
            (touch, self._filesystems.locate(touch.path, event.cwd or None, follow=False))
            for touch in touches
        ]
        known = lookup(self._store, (place.object_id for _, place in located), pending)
        found: dict[str, FileSnapshot] = {}
        for touch, place in located:
            id, before = place.object_id, known[place.object_id]
            # A guessed path counts only if the file is known.
            if id in found or (touch.role == "mentioned" and not before.exists):
                continue
            reported = self._reported(event, touch.role, id, pending)
            if reported is not None:
                found[id] = _content(place, touch.role, before, reported, event.tool)
            elif touch.role == "read" and self._is_outdated(event, id, pending):
                found[id] = FileSnapshot(place.path, id, "read", None, before.head, "unreachable")
            else:
                found[id] = _name_only(place, touch.role, before)
        return list(found.values())

    def after_unobserved(self, event: ToolEvent) -> list[FileSnapshot]:
        """As `after_tool`, for a tool that ran a while ago, unseen.

        Where the tool's result gives the whole text of its file, the main snapshot has that text,
        whatever the file holds by now.
        """
        return self.after_tool(event)

    def reconcile(self, targets: Iterable[str], *, cautious: bool = False) -> list[FileSnapshot]:
        """Compare known files with what is out there now.

        `targets`: object ids, or paths of this machine as a tracker reports them. Snapshots come
        in that order, each object once; only changed ones carry documents. Unknown ids and
        paths are left out, except for a path that a known file was renamed to.

        `cautious`: a change is passed over, with the state `changing`, until the file has settled
        (`sources/looking.py`), since it may be half written. While a file that was just removed is
        passed over, so are all others of the call: it may have been renamed to one of them.
        """
        del cautious  # there is nothing to compare them with
        ids = [target if is_object_id(target) else self.identify(target)[0] for target in targets]
        known = lookup(self._store, ids)
        return [
            unchanged(location_of(id, found), "mentioned", found)
            for id, found in known.items()
            if found.is_on_filesystem
        ]

    def point(self, name: str, cwd: str | None = None) -> Document:
        """The sealed object of a name such as `git:REV:PATH` or a URL; it is not stored.

        Raises `ToolError` with what to do, for the model.
        """
        del cwd
        if git_name(name) is not None:
            raise ToolError(f"{name!r} cannot be read: the session is a recording.")
        return pointer(name)

    def _reported(
        self, event: ToolEvent, role: Role, id: str, pending: Pending
    ) -> _Reported | None:
        if event.is_error or role not in ("read", "written"):
            return None
        if event.tool == "read":
            return _shown_by_read(event)
        if event.tool == "write":
            content = event.input.get("content")
            return _Reported("text", content) if isinstance(content, str) else None
        text = self._text(id, pending)
        edited = None if text is None else apply_edits(text, edits_of(event.input))
        return None if edited is None else _Reported("text", edited)

    def _is_outdated(self, event: ToolEvent, id: str, pending: Pending) -> bool:
        """Whether a read shows lines that the text known of its file does not have."""
        shown, text = parse_read_range(event.input, event.text), self._text(id, pending)
        if event.is_error or shown is None or text is None:
            return False
        return shown.text.strip("\n") not in text

    def _text(self, id: str, pending: Pending) -> str | None:
        document = pending.get(id) or self._store.get(id, FileDocument)
        return document.content if isinstance(document, FileDocument) else None


def is_object_id(target: str) -> bool:
    """Whether a target of `reconcile` is an object's id rather than a path."""
    return _OBJECT_ID.fullmatch(target) is not None


def location_of(id: str, known: Known, filesystems: FilesystemMap | None = None) -> Location:
    """The place of a known file; without `filesystems` it is out of reach."""
    source = known.fields["source"]
    name, path = source["filesystemId"], source["path"]
    return Location(name, path, filesystems.local_at(name, path) if filesystems else None, id)


def _shown_by_read(event: ToolEvent) -> _Reported | None:
    if event.is_unheard:
        return None
    shown = parse_read_range(event.input, event.text)
    if shown is None:
        return _Reported("binary")
    replaced = shown.text.count("\ufffd") * REPLACEMENT_SHARE > len(shown.text)
    if shown.complete and (replaced or "\0" in shown.text):
        return _Reported("binary")
    return _Reported("text", shown.text) if shown.complete else None


def whole_text(event: ToolEvent) -> str | None:
    """The file's whole text, where a read has shown or a write has left exactly that; else None."""
    if event.is_error:
        return None
    text = None
    if event.tool == "write":
        text = event.input.get("content")
    elif event.tool == "read" and (shown := _shown_by_read(event)) is not None:
        text = shown.text
    # Hosts replace what is not UTF-8: then text and bytes are not the same thing.
    return text if isinstance(text, str) and not _REPLACED.search(text) else None


def as_reported(place: Location, role: Role, before: Known, text: str, tool: str) -> FileSnapshot:
    """The file with this text, as a tool reported it; `before`: what is known of it."""
    return _content(place, role, before, _Reported("text", text), tool)


def _content(
    place: Location, role: Role, before: Known, reported: _Reported, tool: str
) -> FileSnapshot:
    digest = None if reported.text is None else hash_text(reported.text)
    if before.state == reported.state and before.fields.get("source_hash") == digest:
        return unchanged(place, role, before)
    generator: Generator = "agent" if role == "written" else "system"
    document = file_version(
        place,
        before.fields,
        state=reported.state,
        content=reported.text,
        source_hash=digest,
        by=(f"recorded {tool}", generator),
    )
    return changed(place, role, before, document)


def _name_only(place: Location, role: Role, before: Known) -> FileSnapshot:
    if before.exists and before.state != "deleted":
        return unchanged(place, role, before)
    document = file_version(place, before.fields, state="listed", by=("recording", "system"))
    return changed(place, role, before, document)
