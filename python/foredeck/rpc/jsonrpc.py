"""jsonrpcserver, imported without its request validator.

jsonrpcserver validates requests with jsonschema, whose import takes half as long as all else that
the engine imports before its first answer. The peer has checked a request's envelope before it is
dispatched and passes its own validator, so the default one is never used: while jsonrpcserver is
imported, a stand-in takes jsonschema's place, unless the real one is there already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGE, _MODULE = "jsonschema", "jsonschema.validators"


class _NeverUsed:
    """What jsonrpcserver prepares when it is imported: a validator class, an instance, a method."""

    def __init__(self, _schema: Any) -> None:
        pass

    @staticmethod
    def check_schema(_schema: Any) -> None:
        """jsonrpcserver's own schema needs no check."""

    def validate(self, _request: Any) -> None:
        """Would accept anything, so it must not be reached."""
        raise AssertionError("dispatch with a validator of your own")


def _validator_for(_schema: Any) -> type[_NeverUsed]:
    return _NeverUsed


@contextmanager
def _without_jsonschema() -> Iterator[None]:
    if _PACKAGE in sys.modules:
        yield
        return
    validators = ModuleType(_MODULE)
    validators.validator_for = _validator_for  # type: ignore[attr-defined]
    sys.modules[_PACKAGE], sys.modules[_MODULE] = ModuleType(_PACKAGE), validators
    try:
        yield
    finally:
        del sys.modules[_PACKAGE], sys.modules[_MODULE]


with _without_jsonschema():
    from jsonrpcserver import Error, Result, Success, async_dispatch_to_serializable

__all__ = ["Error", "Result", "Success", "async_dispatch_to_serializable"]
