"""From the name of a thing that is not on a disk to its object."""

from __future__ import annotations

from foredeck.errors import ToolError
from foredeck.model.documents import Document
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import repository
from foredeck.sources.pointers import git_name, pointer
from foredeck.sources.projects import project_of


def pointed(name: str, filesystems: FilesystemMap, cwd: str | None, max_bytes: int) -> Document:
    """The sealed object of what a name points to: a file as of a commit of the repository that
    `cwd` is in, or what can be said of a URL, an object in S3 or a row without fetching it.

    Raises `ToolError` with what to do.
    """
    asked = git_name(name)
    if asked is None:
        return pointer(name)
    folder = cwd or filesystems.cwd
    local = filesystems.locate(folder).local
    if local is None:
        raise ToolError(f"{folder} cannot be reached from here: read the file with git show.")
    project = project_of(folder, filesystems)
    with repository(local, project.id) as opened:
        return opened.document(asked, max_bytes)
