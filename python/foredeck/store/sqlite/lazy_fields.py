"""The fields of a head, decoded when one of them is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foredeck.store.sqlite.codec import decode_fields


class LazyFields(Mapping[str, Any]):
    """All fields of a version but `content`. A list of a thousand heads costs no decoding.

    Reading a field raises `Corrupt` where the stored bytes are damaged.
    """

    __slots__ = ("_fields", "_row")

    def __init__(self, row: tuple[Any, ...]) -> None:
        """`row`: the arguments of `decode_fields`."""
        self._row: tuple[Any, ...] = row
        self._fields: dict[str, Any] | None = None

    def _decoded(self) -> dict[str, Any]:
        if self._fields is None:
            self._fields = decode_fields(*self._row)
            self._fields.pop("content", None)
            self._row = ()
        return self._fields

    def __getitem__(self, name: str) -> Any:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __repr__(self) -> str:
        return f"LazyFields({self._decoded()!r})"
