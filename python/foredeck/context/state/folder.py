"""Where a session works: the file systems and the project of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from foredeck.config import Config
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import Project, project_of


@dataclass(frozen=True)
class SessionFolder:
    """One session's, looked for once: all that is made for the session shares it."""

    config: Config
    cwd: str

    @cached_property
    def filesystems(self) -> FilesystemMap:
        """The file systems that it reaches, as configured."""
        return open_filesystems(self.config, self.cwd)

    @cached_property
    def project(self) -> Project:
        """The project of its folder. Not for a replay, which must not read the disk."""
        return project_of(self.cwd, self.filesystems)
