"""What the model and the user read of the stale-edit guard."""

from __future__ import annotations

from foredeck.model.quoting import block


def stale(name: str, tool: str, diff: str) -> str:
    """Why a write or edit did not run; `name`: handle and path of the file."""
    return (
        f"Nothing was written: {name} was changed by something else since you last saw it. "
        f"The difference since:\n{block(diff)}\n"
        f"Go on from this. The same {tool} again goes through."
    )


def stale_without_text(name: str, tool: str, what: str) -> str:
    """As `stale`, where there is no difference to show; `what` has happened to the file."""
    return (
        f"Nothing was written: {name} {what} since you last saw it, and not by you. "
        f"The same {tool} again goes through."
    )


def passed(name: str, diff: str) -> str:
    """Added to the result of an edit that is clear of a change by others."""
    changed = f"[foredeck] Something else also changed {name} since you last saw it:"
    return f"{changed}\n{block(diff)}"


def passed_without_text(name: str, what: str) -> str:
    """Added to a result with `guard = "warn"`, where there is no difference to show."""
    return f"[foredeck] {name} {what} since you last saw it, and not by you."


def busy(name: str, tool: str) -> str:
    """Another session's write of the same file has not ended yet."""
    return (
        f"Nothing was written: another session is writing {name} at this moment. "
        f"Make the same {tool} again."
    )
