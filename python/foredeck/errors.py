"""The exceptions that foredeck raises on purpose.

    ForedeckError                 anything a user or the host should hear about
    ├── ConfigError               a configuration value cannot be used
    ├── StoreError                the store refused or failed
    │   ├── Conflict              a compare-and-put found another version
    │   ├── Corrupt               stored bytes are not what their hash says
    │   ├── Missing               a version or blob that should be there is not
    │   └── StoreUnavailable      the store cannot be opened, or is busy for too long
    │       └── StoreDamaged      its file is no store any more
    ├── OutOfSync                 the host speaks of messages that the engine does not hold
    ├── UnknownSession            no such session is open, or stored
    ├── NotFound                  what is asked for by name is not stored
    ├── CommandRefused            a command is not carried out as it was given
    ├── ToolError                 a tool's own error, written for the model
    └── ImportRefused             an import file is damaged, forged or contradicts the store

Each carries the JSON-RPC `code` with which it crosses the seam (docs/protocol.md) and the
`exit_code` with which the command line ends.
"""

from __future__ import annotations


class ForedeckError(Exception):
    """Base of all expected errors; its text is fit for a user to read."""

    code = -32603
    exit_code = 1


class ConfigError(ForedeckError):
    """A configuration value cannot be used."""

    code = -32002
    exit_code = 2


class StoreError(ForedeckError):
    """The store refused or failed."""

    code = -32003
    exit_code = 3


class Conflict(StoreError):
    """A compare-and-put found another version."""


class Corrupt(StoreError):
    """Stored bytes are not what their hash says."""


class Missing(StoreError):
    pass


class StoreUnavailable(StoreError):
    """The store cannot be opened, or another process holds it for too long."""


class StoreDamaged(StoreUnavailable):
    """The store's file is damaged, or no database at all."""

    found = "damaged"
    """What the file is, in one word."""


class StoreEmpty(StoreDamaged):
    """The store's file has lost all that was in it."""

    found = "empty"


class OutOfSync(ForedeckError):
    """The host speaks of messages that the engine does not hold."""

    code = -32010


class UnknownSession(ForedeckError):
    """No such session is open, or stored."""

    code = -32011
    exit_code = 4


class NotFound(ForedeckError):
    """There is no such session, object, call or version in the store."""

    exit_code = 4


class CommandRefused(ForedeckError):
    """A command is not carried out; the text says what to do instead."""

    exit_code = 2


class ToolError(ForedeckError):
    """A tool call cannot be done; the text tells the model what to do instead.

    `typed` takes the place of `instead` for a person, with `{}` as the command's name.
    """

    code = -32020

    def __init__(self, why: str, instead: str = "", typed: str = "") -> None:
        super().__init__(f"{why} {instead}" if instead else why)
        self._why = why
        self._typed = typed

    def for_person(self, command: str) -> str:
        """The text for a person who has typed `command`."""
        return f"{self._why} {self._typed.format(command)}" if self._typed else str(self)


class NoSuchTask(ToolError):
    """No task is called so."""

    exit_code = 4


class ImportRefused(ForedeckError):
    """An import file is damaged, forged, or contradicts what the store holds."""

    exit_code = 5
