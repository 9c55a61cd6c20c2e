# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH110, PTH120
"""Files on the disk: when a look makes a new version."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from foredeck.config import Config
from foredeck.errors import ToolError
from foredeck.model.documents import Document, FileDocument, Generator
from foredeck.model.identity import hash_text
from foredeck.model.sources import FilesystemSource
from foredeck.sources.filesystem import FilesystemMap, Location
from foredeck.sources.git import git_name, repository
from foredeck.sources.looking import Look, SettlingFiles, Volumes, fingerprint_at, is_away, look
from foredeck.sources.projects import ProjectFolders, is_outside, project_of
from foredeck.sources.recorded import (
    FileSource,
    Reported,
    as_reported,
    is_object_id,
    location_of,
    whole_text,
)
from foredeck.sources.renames import (
    TELLING_BYTES,
    Inspected,
    came_later,
    deferred,
    keeps_of_rename,
    new_hash,
    same_again,
    search_renamed,
    search_sizes,
    tie_renames,
)
from foredeck.sources.snapshots import (
    CHANGING,
    EMPTY_HASH,
    NOTHING_PENDING,
    OUTSIDE,
    FileSnapshot,
    Known,
    Limits,
    Pending,
    Role,
    ToolEvent,
    changed,
    differs,
    file_version,
    is_captured,
    is_emptied,
    lookup,
    unchanged,
)
from foredeck.sources.tool_calls import Touch, spellings, tool_path, touched_paths
from foredeck.store.store import Store

REMEMBERED = 50_000
"""Files whose last look is remembered."""

_Origin = tuple[str, Generator]
_FOUND: _Origin = ("disk", "system")


class DiskSource(FileSource):
    """Reads the disk, or where it cannot, trusts the tools' reports.

    An unchanged file costs a `stat`.
    """

    is_live = True

    def __init__(
        self,
        store: Store,
        filesystems: FilesystemMap,
        limits: Limits | None = None,
        project: ProjectFolders | None = None,
    ) -> None:
        """`project`: what may be read unasked."""
        super().__init__(store, filesystems, limits)
        self._last: dict[str, Look] = {}
        self._settling = SettlingFiles()
        self._volumes = Volumes()
        self._named: dict[tuple[str, str], FileDocument] = {}
        self._project = project or ProjectFolders(filesystems)

    def _forget(self) -> None:
        self._filesystems.forget()
        self._volumes.forget()

    def identify(self, path: str, cwd: str | None = None) -> tuple[str, FilesystemSource]:
        """Object id and source of the file at `path`, links resolved."""
        self._forget()
        location = self._locate(path, "read", cwd)
        return location.object_id, location.source

    def sight(
        self,
        path: str,
        role: Role,
        *,
        cwd: str | None = None,
        pending: Pending = NOTHING_PENDING,
        unasked: bool = False,
    ) -> FileSnapshot:
        """Looks at one file."""
        self._forget()
        location = self._locate(tool_path(path), role, cwd)
        stored = lookup(self._store, [location.object_id], pending)[location.object_id]
        if unasked and not self._may_read(location, stored):
            return unchanged(location, role, stored, OUTSIDE)
        return self._sight(location, role, stored, _FOUND)

    def after_tool(self, event: ToolEvent) -> list[FileSnapshot]:
        """Files that a tool call touched, as they are now."""
        self._forget()
        touches = touched_paths(event, self._limits.discovered_paths)
        located = [(t, self._locate(t.path, t.role, event.cwd or None)) for t in touches]
        # The file lies in a container, or on a volume that this machine does not have.
        if located and located[0][0].certain and located[0][1].local is None:
            return super().after_tool(event)
        for path in event.changed:
            touch = Touch(path, "mentioned", certain=False)
            located.append((touch, self._filesystems.locate_local(path)))
        stored = lookup(self._store, (place.object_id for _, place in located))
        by = _author(event)
        inspected: dict[str, Inspected] = {}
        for touch, place in located:
            before = stored[place.object_id]
            if place.object_id not in inspected and self._is_worth_a_look(
                event, touch, place, before
            ):
                snapshot = self._sight(place, touch.role, before, by)
                inspected[place.object_id] = Inspected(place, before, snapshot)
        self._follow_moves(inspected, [], by)
        return [m.snapshot for m in inspected.values() if m.known.exists or m.snapshot.document]

    def recall(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        """Files of an old tool call, by name only."""
        snapshots = []
        # What a listing or a command merely names is not looked for: of a long history that
        # would be a fifth of the work.
        for touch in touched_paths(event, 0):
            name = (event.cwd, touch.path)
            # Nor are files looked at again and again, as a history names them: one that nothing has
            # named before is found once in a transaction.
            document = self._named.get(name)
            is_found = document is not None and pending.get(document.id) is document
            if touch.role not in ("read", "written") or is_found:
                continue
            snapshot = self.sight(touch.path, "listed", cwd=event.cwd or None, pending=pending)
            if snapshot.document is not None and snapshot.head is None:
                self._named[name] = snapshot.document
            snapshots.append(replace(snapshot, role=touch.role))
        return snapshots

    def after_unobserved(self, event: ToolEvent) -> list[FileSnapshot]:
        """Files that a tool call touched; the main one as the tool reported it."""
        snapshots = self.after_tool(event)
        text, touch = whole_text(event), next(iter(touched_paths(event, 1)), None)
        if text is None or touch is None:
            return snapshots
        place = self._locate(touch.path, touch.role, event.cwd or None)
        main = next((s for s in snapshots if s.object_id == place.object_id), None)
        if main is not None and _source_hash(main) == hash_text(text):
            return snapshots
        stored = lookup(self._store, [place.object_id])[place.object_id]
        # The file has changed since: what the tool reported is what the agent knows.
        others = [s for s in snapshots if s.object_id != place.object_id]
        return [as_reported(place, touch.role, stored, Reported("text", text), event.tool), *others]

    def reconcile(self, targets: Iterable[str], *, cautious: bool = False) -> list[FileSnapshot]:
        """Compares known files with the disk."""
        self._forget()
        inspected: dict[str, Inspected] = {}
        untracked: dict[str, Location] = {}
        for place, stored in self._targets(list(targets)):
            if not stored.exists:
                untracked.setdefault(place.object_id, place)
            elif place.object_id not in inspected:
                snapshot = self._sight(place, "mentioned", stored, _FOUND, cautious=cautious)
                inspected[place.object_id] = Inspected(place, stored, snapshot)
                # A link may have taken its place: then that leads to another file.
                if snapshot.state == "deleted" and place.local is not None:
                    beyond = self._filesystems.locate_local(place.local)
                    if not self._project.leads_out(place, beyond):
                        untracked.setdefault(beyond.object_id, beyond)
        changing = [m.location.local for m in inspected.values() if m.snapshot.state == CHANGING]
        if any(local is not None and not os.path.exists(local) for local in changing):
            # It may have been renamed to another of these, so they are taken in together.
            return [deferred(m) for m in inspected.values()]
        others = [s for s in untracked.values() if s.object_id not in inspected]
        self._follow_moves(inspected, others, _FOUND)
        return [m.snapshot for m in inspected.values()]

    def point(self, name: str, cwd: str | None = None) -> Document:
        """The object behind a pointer, such as a file of a commit."""
        revision_path = git_name(name)
        if revision_path is None:
            return super().point(name)
        folder = cwd or self._filesystems.cwd
        local = self._filesystems.locate(folder).local
        if local is None:
            raise ToolError(f"{folder} cannot be reached from here: read the file with git show.")
        with repository(local, project_of(folder, self._filesystems).id) as opened:
            return opened.document(revision_path, self._limits.max_file_bytes)

    def _locate(self, path: str, role: Role, cwd: str | None) -> Location:
        location = self._filesystems.locate(path, cwd)
        if role != "read" or location.local is None or os.path.exists(location.local):
            return location
        for other in spellings(path):
            place = self._filesystems.locate(other, cwd)
            if place.local is not None and os.path.exists(place.local):
                return place
        return location

    def _targets(self, targets: Sequence[str]) -> Iterable[tuple[Location, Known]]:
        """Places and stored states of targets; a path may name two objects."""
        paths = [t for t in targets if not is_object_id(t)]
        places = {
            path: (
                self._filesystems.locate_local(path, follow=False),
                self._filesystems.locate_local(path),
            )
            for path in paths
        }
        ids = [t for t in targets if is_object_id(t)]
        ids += [place.object_id for pair in places.values() for place in pair]
        stored = lookup(self._store, ids)
        for target in targets:
            if target in places:
                unresolved, real = places[target]
                if stored[unresolved.object_id].exists:
                    yield unresolved, stored[unresolved.object_id]
                if stored[real.object_id].exists or not self._project.leads_out(unresolved, real):
                    yield real, stored[real.object_id]
            elif stored[target].is_on_filesystem:
                yield location_of(target, stored[target], self._filesystems), stored[target]

    def _sight(
        self, place: Location, role: Role, known: Known, by: _Origin, *, cautious: bool = False
    ) -> FileSnapshot:
        if place.local is None:
            return unchanged(place, role, known, "unreachable")
        if role in ("listed", "mentioned") and known.state != "deleted":
            if not known.exists:
                return self._first_mention(place, role, known)
            if role == "listed" or (not known.has_content and os.path.exists(place.local)):
                return unchanged(place, role, known)
        elif role in ("listed", "mentioned") and not self._may_read(place, known):
            return unchanged(place, role, known)
        # A path that has become a link names another file now, with an object of its own.
        linked = self._filesystems.real(place.local) != place.local
        result = Look("missing") if linked else self._look(place.local, known)
        if result.kind in ("missing", "directory") and self._is_away(place.local, known):
            result = Look("unreachable")
        return self._seen(place, role, known, result, by, cautious=cautious)

    def _first_mention(self, place: Location, role: Role, known: Known) -> FileSnapshot:
        assert place.local is not None
        # Only what it is, not what it holds: a listing may name thousands of files.
        result = look(place.local, max_bytes=-1, hashed_bytes=-1)
        if result.kind == "special":
            return self._seen(place, role, known, result, _FOUND)
        if result.kind != "huge":
            return unchanged(place, role, known, result.kind)
        document = file_version(place, known.fields, state="listed", by=_FOUND)
        return changed(place, role, known, document)

    def _look(self, local: str, known: Known) -> Look:
        last = self._last.get(local)
        if last is not None and last.source_hash == known.fields.get("source_hash"):
            # One that was changed a moment ago (not `trusted`) could have changed once more within
            # one tick of its time stamp.
            is_same = last.trusted and fingerprint_at(local) == last.fingerprint
            if is_same and last.kind == known.state:
                return last
        result = look(local, self._limits.max_file_bytes)
        if result.fingerprint is not None:
            if len(self._last) >= REMEMBERED:
                self._last.clear()
            result = replace(result, volume=self._volumes.place(os.path.dirname(local)))
            self._last[local] = replace(result, text=None)
        return result

    def _is_away(self, local: str, known: Known) -> bool:
        last = self._last.get(local)
        seen_on = None if last is None else last.volume
        return is_away(local, known.fields, self._filesystems, self._volumes, seen_on)

    def _seen(
        self,
        place: Location,
        role: Role,
        known: Known,
        seen: Look,
        by: _Origin,
        *,
        cautious: bool = False,
    ) -> FileSnapshot:
        local = place.local or ""
        if seen.kind in ("missing", "directory"):
            if not known.exists or known.state == "deleted":
                self._settling.forget(local)
                return unchanged(place, role, known, known.state or seen.kind)
            seen, state = Look("missing"), "deleted"
        elif seen.kind == "unreachable" or (seen.kind == "unreadable" and known.has_content):
            return unchanged(place, role, known, seen.kind)
        else:
            state = seen.kind
        is_met = role in ("read", "written")
        captured = is_captured(known.fields) and not is_met
        if not differs(known, seen, state) and captured == is_captured(known.fields):
            self._settling.forget(local)
            return unchanged(place, role, known)
        if cautious and not self._settling.is_settled(local, seen, emptied=is_emptied(known, seen)):
            return unchanged(place, role, known, CHANGING)
        self._settling.forget(local)
        document = file_version(
            place,
            known.fields,
            state=state,
            content=seen.text,
            source_hash=seen.source_hash,
            revision=seen.revision,
            size=None if state in ("deleted", "unreadable", "special") else seen.size,
            file_type=seen.detail if state == "special" else None,
            by=by,
            captured=captured,
            volume=seen.volume,
        )
        return changed(place, role, known, document)

    def _may_read(self, place: Location, known: Known) -> bool:
        if known.was_read or self._project.holds(place):
            return True
        if known.head is None or known.state != "deleted":
            return False
        # What counts is whether it was read before it was deleted.
        states = {head.fields.get("state") for head in self._store.history(known.head.id)}
        return not states <= {"listed", "special", "deleted"}

    def _is_worth_a_look(
        self, event: ToolEvent, touch: Touch, place: Location, known: Known
    ) -> bool:
        """Whether a touched path is worth reading: no link of the project to elsewhere that a tool
        merely met."""
        if known.exists:
            return True
        if event.is_error and touch.certain:
            return False
        if not (touch.certain or (place.local is not None and os.path.exists(place.local))):
            return False
        unresolved = self._filesystems.locate(touch.path, event.cwd or None, follow=False)
        return touch.role in ("read", "written") or not self._project.leads_out(unresolved, place)

    def _follow_moves(
        self, met: dict[str, Inspected], untracked: Sequence[Location], by: _Origin
    ) -> None:
        # Empty files have equal bytes without being the same file.
        gone = [
            m
            for m in met.values()
            if m.snapshot.document is not None
            and m.snapshot.document.state == "deleted"
            and m.known.fields.get("source_hash") not in (None, EMPTY_HASH)
        ]
        if not gone:
            return
        # First those that were met anyway; the folders are searched only for what is left.
        hashes = {str(m.known.file.source_hash) for m in gone}
        bare = [
            (m.location, m.snapshot.role, m.known)
            for m in met.values()
            if m.snapshot.state == "listed"
        ]
        bare += [(place, "mentioned", Known()) for place in untracked]
        new = self._arrived(bare[: self._limits.discovered_paths], by)
        arrived = [m for m in [*met.values(), *new] if new_hash(m) in hashes]
        for old in tie_renames(met, gone, arrived, self._are_common):
            tie_renames(met, [old], self._search(old, met, by), self._are_common)

    def _are_common(self, old: Inspected, new: Inspected) -> bool:
        """Whether equal bytes may be chance, as a licence's."""
        last, now = (self._last.get(one.location.local or "") for one in (old, new))
        if keeps_of_rename(last, now, old.known.head):
            return False
        if (old.known.fields.get("size") or 0) < TELLING_BYTES:
            return True
        these = old.location.object_id, new.location.object_id
        files = self._store.query("file", {"source_hash": str(old.known.file.source_hash)})
        return any(head.id not in these for head in files)

    def _search(self, old: Inspected, met: Mapping[str, Inspected], by: _Origin) -> list[Inspected]:
        """The unnamed file with this file's inode, else files with its bytes."""
        local = old.location.local or ""
        near, within = os.path.dirname(local), self._filesystems.real(self._filesystems.cwd)
        last = self._last.get(local)
        if last is not None and last.fingerprint is not None:
            found_at = search_renamed(last.fingerprint[:2], near, within)
            return self._arrived_at([found_at] if found_at else [], met, by)
        size, hash = old.known.fields.get("size"), str(old.known.file.source_hash)
        paths = search_sizes(size, near, within)[: self._limits.discovered_paths] if size else []
        matches = [m for m in self._arrived_at(paths, met, by) if new_hash(m) == hash]
        for head in self._store.query("file", {"source_hash": hash}):
            stored = Known(head, head.fields)
            if head.id in met or not came_later(self._store, head, old.known.head):
                continue
            place = location_of(head.id, stored, self._filesystems)
            if place.local is not None and os.path.exists(place.local):
                document = same_again(self._store, head, by)
                snapshot = changed(place, "mentioned", stored, document)
                matches.append(Inspected(place, stored, snapshot))
        return matches

    def _arrived_at(
        self, paths: Iterable[str], met: Mapping[str, Inspected], by: _Origin
    ) -> list[Inspected]:
        places = [self._filesystems.locate_local(path) for path in paths]
        stored = lookup(self._store, (place.object_id for place in places))
        new = (place for place in places if place.object_id not in met)
        return self._arrived(((place, "mentioned", stored[place.object_id]) for place in new), by)

    def _arrived(
        self, places: Iterable[tuple[Location, Role, Known]], by: _Origin
    ) -> list[Inspected]:
        arrivals = []
        for place, role, stored in places:
            if place.local is not None:
                snapshot = self._seen(place, role, stored, self._look(place.local, stored), by)
                if snapshot.document is not None:
                    arrivals.append(Inspected(place, stored, snapshot))
        return arrivals


def _author(event: ToolEvent) -> _Origin:
    if event.tool in ("write", "edit"):
        return (event.tool, "agent")
    return (event.tool, "tool") if event.tool in ("bash", "exec", "powershell") else _FOUND


def _source_hash(snapshot: FileSnapshot) -> str | None:
    if snapshot.document is not None:
        return snapshot.document.source_hash
    return None if snapshot.head is None else snapshot.head.fields.get("source_hash")


def open_source(config: Config, store: Store, filesystems: FilesystemMap) -> DiskSource:
    """The source for this machine's disk."""
    limits = Limits(config.limits.max_file_bytes)
    outside_folders = [name for name in config.notes.folders if is_outside(name)]
    return DiskSource(store, filesystems, limits, ProjectFolders(filesystems, outside_folders))
