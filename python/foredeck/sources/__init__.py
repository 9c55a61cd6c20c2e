"""The outside things that objects track: file identity, indexing and trackers."""

from foredeck.sources.classify import Look, look
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap, Location, Mount, file_id
from foredeck.sources.indexing import (
    CHANGING,
    NOTHING_PENDING,
    OUTSIDE,
    FileSource,
    Limits,
    Pending,
    Role,
    Sighting,
    ToolEvent,
)
from foredeck.sources.machine import default_filesystem_id
from foredeck.sources.recorded import ReadRange, RecordedSource, parse_read_range
from foredeck.sources.toolpaths import Touch, path_argument, tool_path, touched_paths
from foredeck.sources.tracking import FileTracker, TrackerOptions, TrackerState

__all__ = [
    "CHANGING",
    "NOTHING_PENDING",
    "OUTSIDE",
    "DiskSource",
    "FileSource",
    "FileTracker",
    "FilesystemMap",
    "Limits",
    "Location",
    "Look",
    "Mount",
    "Pending",
    "ReadRange",
    "RecordedSource",
    "Role",
    "Sighting",
    "ToolEvent",
    "Touch",
    "TrackerOptions",
    "TrackerState",
    "default_filesystem_id",
    "file_id",
    "look",
    "parse_read_range",
    "path_argument",
    "tool_path",
    "touched_paths",
]
