"""Error codes of the wire, and the errors that arise on it.

Expected errors of the layers below are `foredeck.errors.ForedeckError` and carry their own code.
"""

from __future__ import annotations

from foredeck.errors import ForedeckError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
PROTOCOL_MISMATCH = -32001
CANCELLED = -32800


class ParseError(ForedeckError):
    """A line is not UTF-8, not JSON, or nested too deeply to be read."""

    code = PARSE_ERROR


class InvalidRequestError(ForedeckError):
    """A line is JSON, but not a request that can be served now."""

    code = INVALID_REQUEST


class InvalidParamsError(ForedeckError):
    """The parameters of a request do not have the shape that its method asks for."""

    code = INVALID_PARAMS


class ProtocolError(ForedeckError):
    """The host speaks another version of the protocol."""

    code = PROTOCOL_MISMATCH


class PeerClosedError(ForedeckError):
    """The connection ended before the other side answered."""


class RemoteError(ForedeckError):
    """The other side answered a request of ours with an error; `code` is the one that it sent."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
