"""The fields of a head, decoded when one of them is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class LazyFields(Mapping[str, Any]):
    """All fields of a version but `content`. Listing a thousand heads decodes none of them.

    Reading a field raises `Corrupt` where the stored bytes are damaged.
    """

    __slots__ = ("_decode", "_fields", "_stored")

    def __init__(self, decode: Callable[..., dict[str, Any]], *stored: Any) -> None:
        """`decode` turns what is stored into all fields."""
        self._decode = decode
        self._stored: tuple[Any, ...] = stored
        self._fields: dict[str, Any] | None = None

    def _decoded(self) -> dict[str, Any]:
        if self._fields is None:
            self._fields = self._decode(*self._stored)
            self._fields.pop("content", None)
            self._stored = ()
        return self._fields

    def __getitem__(self, name: str) -> Any:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __repr__(self) -> str:
        return f"LazyFields({self._decoded()!r})"
