"""What the model reads of files that something else has changed."""

from __future__ import annotations

from foredeck.context.quoting import on_one_line


def changed_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has changed."""
    path = on_one_line(path)
    return f"[foredeck] @{ordinal} {path} changed on disk: the copy above is old."


def overwritten_on_disk(ordinal: int, path: str, version: int) -> str:
    """A file that was saved while a write of the agent's was under way; `version`: what it held."""
    return (
        f"[foredeck] @{ordinal} {on_one_line(path)} was saved by something else right before your "
        f'write took its place: activate "@{ordinal} v{version}" shows what that was.'
    )


def deleted_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has deleted."""
    return f"[foredeck] @{ordinal} {on_one_line(path)} was deleted on disk."


def moved_on_disk(ordinal: int, new: int, path: str, *, outdated: bool = False) -> str:
    """A visible file that has another name now, and with that another handle.

    `outdated`: what can be seen of it is not what was moved.
    """
    notice = f"[foredeck] @{ordinal} moved to {on_one_line(path)}, which is @{new}"
    return f"{notice}: the copy above is old." if outdated else f"{notice}."
