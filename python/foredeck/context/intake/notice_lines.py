"""What the model reads of files that something else has changed."""

from __future__ import annotations

from foredeck.model.quoting import name


def changed_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has changed."""
    return f"[foredeck] @{ordinal} {name(path)} changed on disk: the copy above is old."


def overwritten_on_disk(ordinal: int, path: str, version: int) -> str:
    """A file that was saved while a write of the agent's was under way; `version`: what it held."""
    return (
        f"[foredeck] Something else saved @{ordinal} {name(path)} right before your write: "
        f'activate "@{ordinal} v{version}" shows that.'
    )


def deleted_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has deleted."""
    return f"[foredeck] @{ordinal} {name(path)} was deleted on disk."


def moved_on_disk(ordinal: int, new: int, path: str, *, outdated: bool = False) -> str:
    """A visible file that has another name now, and with that another handle.

    `outdated`: what can be seen of it is not what was moved.
    """
    notice = f"[foredeck] @{ordinal} moved to {name(path)}, which is @{new}"
    return f"{notice}: the copy above is old." if outdated else f"{notice}."
