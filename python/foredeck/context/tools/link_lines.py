"""The lines of a list of links, as the model reads them: stable, and snapshot-tested."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.model.quoting import one_line, quoted

LINKS = "Refers to:"
BACKLINKS = "Referred to by:"


def linked_heading(line: str, title: str, tags: Sequence[str]) -> str:
    """First line of what an object is linked with: its metadata (`object_line`), title and tags."""
    named = f' "{title}"' if title else ""
    return f"{line}{named}{''.join(f' #{one_line(tag)}' for tag in tags)}"


def linked_line(name: str, title: str, relations: Sequence[str]) -> str:
    """One object that is linked with another, and how; a mere mention is not said."""
    named = f' "{title}"' if title else ""
    how = "" if list(relations) == ["mentions"] else f" ({', '.join(relations)})"
    return f"- {name}{named}{how}"


def more_objects(count: int) -> str:
    """Ends a list of objects that is cut short."""
    return f"- and {count:,} more"


def unresolved(target: str, candidates: Sequence[str]) -> str:
    """A link that means nothing known, or one of several objects."""
    if not candidates:
        return f"Link {quoted(target)} leads nowhere yet."
    return f"Link {quoted(target)} could be {', '.join(candidates)}."


def no_links() -> str:
    """Of an object that refers to nothing, and that nothing refers to."""
    return "No links."


def refers_to_nothing(name: str) -> str:
    """A field whose references lead to nothing that is stored."""
    return f"{name} refers to nothing that is stored."


def part_size(name: str, chars: int) -> str:
    """The metadata of a part of an object."""
    return f"{name} chars={chars}"
