"""The pictures of the README are those that the script takes: light and dark, and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foredeck_bench.pictures import PICTURES, pictures_of

PNG = b"\x89PNG\r\n\x1a\n"
SHOWN = re.compile(r"docs/pictures/([a-z]+)-(light|dark)\.png")
NAMES = [picture.name for picture in pictures_of("session", 1)]


def test_every_picture_is_there_in_both_schemes() -> None:
    expected = {f"{name}-{scheme}.png" for name in NAMES for scheme in ("light", "dark")}
    assert {file.name for file in PICTURES.iterdir()} == expected
    for file in PICTURES.iterdir():
        assert file.read_bytes().startswith(PNG)
        assert file.stat().st_size < 100_000, file.name


@pytest.mark.parametrize("page", ["README.md", "docs/inspector.md"])
def test_a_page_shows_each_of_its_pictures_in_both_schemes(checkout: Path, page: str) -> None:
    text = (checkout / page).read_text().replace('="pictures/', '="docs/pictures/')
    shown = set(SHOWN.findall(text))
    assert shown
    assert shown == {(name, scheme) for name, _ in shown for scheme in ("light", "dark")}
    assert {name for name, _ in shown} <= set(NAMES)
    assert text.count("alt=") == len(shown) // 2
