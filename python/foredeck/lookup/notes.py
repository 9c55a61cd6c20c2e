"""Which of the stored Markdown files are notes, for those who list them."""

from __future__ import annotations

from pathlib import Path

from foredeck.config import Config
from foredeck.notes.parsed import NoteRule
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import checkout_of


def note_rule(config: Config) -> NoteRule:
    """Which Markdown files are notes, by the configuration and the repositories they lie in."""
    filesystems = open_filesystems(config, str(Path.cwd()))
    return NoteRule(config.notes.folders, lambda folder: checkout_of(folder, filesystems))
