"""What cannot be looked up."""

from foredeck.errors import ForedeckError


class NotFound(ForedeckError):
    """There is no such session, object, call or version in the store."""

    exit_code = 4
