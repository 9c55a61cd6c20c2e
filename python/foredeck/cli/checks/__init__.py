"""What `foredeck doctor` checks: each module gives findings about one part of the machine."""

from foredeck.finding import Finding, Status

__all__ = ["Finding", "Status"]
