"""Files as a recorded session reports them, without the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from foredeck.errors import ToolError
from foredeck.model.documents import Document, FileDocument, Generator
from foredeck.model.identity import hash_text
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
from foredeck.store.store import Store

REPLACEMENT_SHARE = 20
"""A text with more than one replacement character in this many was binary."""


_OBJECT_ID = re.compile("[0-9a-f]{64}")
_REPLACED = re.compile("[\ufffd\ud800-\udfff]")


class Reported(NamedTuple):
    """A file's content by a recorded result."""

    state: str
    text: str | None = None


class FileSource:
    """Files by the tools' reports, as in a replay. Not thread-safe."""

    is_live: ClassVar[bool] = False
    """Whether tools run here and now, so that the disk shows their effects."""

    def __init__(
        self, store: Store, filesystems: FilesystemMap, limits: Limits | None = None
    ) -> None:
        self._store = store
        self._filesystems = filesystems
        self._limits = limits or Limits()

    def identify(self, path: str, cwd: str | None = None) -> tuple[str, FilesystemSource]:
        location = self._filesystems.locate(path, cwd, follow=False)
        return location.object_id, location.source

    def agent_path(self, source: FilesystemSource) -> str:
        """The agent's name of a known file."""
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
        """Looks at one file; `listed` never takes in content.

        `unasked`: a file outside the project stays unread, with state `OUTSIDE`.
        """
        del unasked  # nothing is read
        location = self._filesystems.locate(path, cwd, follow=False)
        stored = lookup(self._store, [location.object_id], pending)[location.object_id]
        sighted = _name_only if role == "listed" else unchanged
        return sighted(location, role, stored)

    def after_tool(self, event: ToolEvent) -> list[FileSnapshot]:
        """Snapshots of the files that a tool call touched, the main one first."""
        return self._told_by(event, NOTHING_PENDING)

    def recall(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        """Like `after_tool`, for a tool that ran before the session could look."""
        return self._told_by(event, pending)

    def _told_by(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        touches = touched_paths(event, self._limits.discovered_paths)
        located = [
            (touch, self._filesystems.locate(touch.path, event.cwd or None, follow=False))
            for touch in touches
        ]
        stored = lookup(self._store, (place.object_id for _, place in located), pending)
        snapshots: dict[str, FileSnapshot] = {}
        for touch, place in located:
            id, before = place.object_id, stored[place.object_id]
            # A guessed path counts only if the file is known.
            if id in snapshots or (touch.role == "mentioned" and not before.exists):
                continue
            reported = self._reported(event, touch.role, id, pending)
            if reported is not None:
                snapshots[id] = as_reported(place, touch.role, before, reported, event.tool)
            elif touch.role == "read" and self._is_outdated(event, id, pending):
                snapshots[id] = FileSnapshot(
                    place.path, id, "read", None, before.head, "unreachable"
                )
            else:
                snapshots[id] = _name_only(place, touch.role, before)
        return list(snapshots.values())

    def after_unobserved(self, event: ToolEvent) -> list[FileSnapshot]:
        """Like `after_tool`, for a tool that ran unseen."""
        return self.after_tool(event)

    def reconcile(self, targets: Iterable[str], *, cautious: bool = False) -> list[FileSnapshot]:
        """Compares known files with the present, one snapshot per object.

        `cautious`: unsettled changes get the state `changing`, and wait with them the other changes
        while a removed file may have been renamed.
        """
        del cautious  # there is nothing to compare them with
        ids = [target if is_object_id(target) else self.identify(target)[0] for target in targets]
        stored = lookup(self._store, ids)
        return [
            unchanged(location_of(id, entry), "mentioned", entry)
            for id, entry in stored.items()
            if entry.is_on_filesystem
        ]

    def point(self, name: str, cwd: str | None = None) -> Document:
        """The object of `git:REV:PATH`, a URL or the like. Raises `ToolError` with advice for the
        model."""
        del cwd
        if git_name(name) is not None:
            raise ToolError(f"{name!r} cannot be read: the session is a recording.")
        return pointer(name)

    def _reported(self, event: ToolEvent, role: Role, id: str, pending: Pending) -> Reported | None:
        if event.is_error or role not in ("read", "written"):
            return None
        if event.tool == "read":
            return _shown_by_read(event)
        if event.tool == "write":
            content = event.input.get("content")
            return Reported("text", content) if isinstance(content, str) else None
        text = self._text(id, pending)
        edited = None if text is None else apply_edits(text, edits_of(event.input))
        return None if edited is None else Reported("text", edited)

    def _is_outdated(self, event: ToolEvent, id: str, pending: Pending) -> bool:
        range_, text = parse_read_range(event.input, event.text), self._text(id, pending)
        if event.is_error or range_ is None or text is None:
            return False
        return range_.text.strip("\n") not in text

    def _text(self, id: str, pending: Pending) -> str | None:
        document = pending.get(id) or self._store.get(id, FileDocument)
        return document.content if isinstance(document, FileDocument) else None


def is_object_id(target: str) -> bool:
    return _OBJECT_ID.fullmatch(target) is not None


def location_of(id: str, known: Known, filesystems: FilesystemMap | None = None) -> Location:
    """A known file's place; out of reach without `filesystems`."""
    source = known.fields["source"]
    name, path = source["filesystemId"], source["path"]
    return Location(name, path, filesystems.local_at(name, path) if filesystems else None, id)


def _shown_by_read(event: ToolEvent) -> Reported | None:
    if event.is_unheard:
        return None
    range_ = parse_read_range(event.input, event.text)
    if range_ is None:
        return Reported("binary")
    replaced = range_.text.count("\ufffd") * REPLACEMENT_SHARE > len(range_.text)
    if range_.complete and (replaced or "\0" in range_.text):
        return Reported("binary")
    return Reported("text", range_.text) if range_.complete else None


def whole_text(event: ToolEvent) -> str | None:
    """The file's whole text after a complete read or a write, else None."""
    if event.is_error:
        return None
    text = None
    if event.tool == "write":
        text = event.input.get("content")
    elif event.tool == "read" and (reported := _shown_by_read(event)) is not None:
        text = reported.text
    # Hosts replace what is not UTF-8: then text and bytes are not the same thing.
    return text if isinstance(text, str) and not _REPLACED.search(text) else None


def as_reported(
    place: Location, role: Role, before: Known, reported: Reported, tool: str
) -> FileSnapshot:
    """The file with what a tool's result says of it."""
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


def recorded_source(store: Store, cwd: str) -> FileSource:
    """A replay's files, as the recorded results show them; nothing of this machine's is read."""
    return FileSource(store, FilesystemMap("replay", [], cwd=cwd))
