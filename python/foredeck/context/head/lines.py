"""The lines of the head: those around every section, and those in the list of project files."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.quoting import on_one_line


def head_opening() -> str:
    """Begins the block that stands before the chat."""
    return "[foredeck] Kept beside this chat, as of its last rewrite. Not the user's words.\n"


def head_section(name: str) -> str:
    """The line over one section of that block."""
    return f"[foredeck] {name}:\n"


def pool_line(name: str, about: str) -> str:
    """A file that is not in the chat, with the title and the tags of a note."""
    return f"{name}: {about}" if about else name


def pool_rest(count: int, folders: Sequence[str], *, more: bool) -> str:
    """Ends a list of such files that is cut short; `more`: they lie in more folders than these."""
    where = ", ".join(f"{on_one_line(folder)}/" for folder in folders)
    others = " and elsewhere" if more else ""
    return f'and {count:,} more in {where}{others}: activate PATH, show "metadata"'
