"""jsonrpcserver, imported without its request validator.

jsonrpcserver prepares a validator of jsonschema as soon as it is imported, and importing jsonschema
takes about 40 ms. An engine has 300 ms from its start to its first answer, and needs nearly all of
them for other imports. The validator would never be used: the peer checks the envelope of a request
before it is dispatched. jsonrpcserver offers no other way to leave it out, so a stand-in takes
jsonschema's place while it is imported, unless the real one is there already; afterwards
`sys.modules` is as it was. This is the only place that does such a thing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGE, _MODULE = "jsonschema", "jsonschema.validators"


class _NeverUsed:
    """In the place of a validator class: what jsonrpcserver calls of it when it is imported."""

    def __init__(self, _schema: Any) -> None:
        pass

    @staticmethod
    def check_schema(_schema: Any) -> None:
        """jsonrpcserver's own schema needs no check."""

    def validate(self, _request: Any) -> None:
        """Must not be reached: it would accept anything."""
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
