"""What is kept between processes holds for the very code that has worked it out."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import foredeck
from foredeck.model.canonical import sha256_hex


@lru_cache
def hash_of_modules(names: tuple[str, ...]) -> str:
    """A hash of the source of these modules, named by their paths within the package.

    Raises `OSError` where one cannot be read.
    """
    root = Path(foredeck.__file__).parent
    return sha256_hex(b"\0".join((root / name).read_bytes() for name in names))
