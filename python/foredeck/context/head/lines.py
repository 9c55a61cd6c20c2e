"""The lines of the head: those around every section, and those in the list of project files."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.model.quoting import name as named


def head_opening() -> str:
    """Begins the block before the chat."""
    return "[foredeck] Background, not the user's words. The chat is newer.\n"


def head_section(name: str) -> str:
    """The line over one section of that block."""
    return f"[foredeck] {name}:\n"


def pool_line(name: str, about: str) -> str:
    """A file that is not in the chat, with the title and the tags of a note. It begins with what
    others wrote, and so not at the margin."""
    return f" {name}: {about}" if about else f" {name}"


def pool_rest(count: int, folders: Sequence[str], *, more: bool) -> str:
    """Ends a list of such files that is cut short; `more`: they lie in more folders than these."""
    where = ", ".join(f"{named(folder)}/" for folder in folders)
    others = " and elsewhere" if more else ""
    return f'and {count:,} more in {where}{others}: activate PATH, show "metadata"'
