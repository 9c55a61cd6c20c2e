"""Whether files can be checked in place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from foredeck.config import Config
from foredeck.model.sources import path_of
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.volumes import Volumes, is_orphaned
from foredeck.store.protocol import Head, Store

TrackingState = Literal["tracked", "orphaned"]

ORPHANED = "orphaned: it cannot be looked at where it was, and its last version stays"


class Tracking:
    """A store's files on this machine; `folders` are those of sessions."""

    def __init__(self, config: Config, folders: Collection[str]) -> None:
        self._filesystems = open_filesystems(config, ".")
        self._volumes = Volumes()
        self._folders = folders

    def is_ours(self, head: Head) -> bool:
        """Whether a file's file system belongs to this machine."""
        return (head.fields.get("source") or {}).get("filesystemId") in self._filesystems.ids

    def state(self, head: Head) -> TrackingState | None:
        """None for deleted files and other objects."""
        fields, path = head.fields, path_of(head.fields)
        if head.type != "file" or path is None or fields.get("state") == "deleted":
            return None
        local = self._filesystems.local_at(str(fields["source"]["filesystemId"]), path)
        gone = is_orphaned(fields, local, self._filesystems, self._volumes, self._folders)
        return "orphaned" if gone else "tracked"


def tracking(config: Config, store: Store) -> Tracking:
    folders = {str(head.fields.get("cwd") or "") for head in store.query("session")}
    return Tracking(config, folders - {""})
