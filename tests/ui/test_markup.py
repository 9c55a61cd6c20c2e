"""Text of others as HTML: nothing of it becomes markup that it did not earn."""

from __future__ import annotations

import re
from html import unescape

import pytest

from foredeck_inspector.pages import MOST_COLOURED, coloured, markdown, marked

TAG = re.compile(r"</?([a-z0-9]+)")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "![<b>alt</b>](https://evil.example/x.png)",
        "[go](javascript:alert(1)) [here](data:text/html,x) <javascript:alert(1)>",
        "[local](/memory?act=delete)",
        '```html" onmouseover="x\n<script>\n```',
        "| a | <i> |\n|---|---|\n| <b> | `<u>` |",
        '# <h1 onclick="x">',
        '[x](https://good.example "title\\" onclick=\\"x")',
    ],
)
def test_markdown_has_only_marks_of_its_own(text: str) -> None:
    html = str(markdown(text))
    known = {"p", "strong", "em", "a", "pre", "code", "span", "table", "thead", "tbody"}
    assert set(TAG.findall(html)) <= known | {"tr", "th", "td"}
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert all(each.startswith("https://") for each in re.findall(r'href="([^"]*)"', html))


def test_markdown_is_rendered_and_its_words_are_marked() -> None:
    html = str(markdown("Use **this** `fold` for\n\n- one\n- a Fold\n", ["fold"]))
    assert "<strong>this</strong>" in html
    assert "<li>a <mark>Fold</mark></li>" in html
    assert 'class="c-k"' in str(markdown("```python\nreturn 1\n```"))


@pytest.mark.parametrize("name", ["a.py", "b.ts", "c.html", "bash", "d.json", "no-such-language"])
def test_code_keeps_all_its_characters(name: str) -> None:
    text = "\n\ndef f(a):\n\treturn '<b>' & \"x\"  # \u00e9\n\n"
    plain = unescape(re.sub(r"<[^>]*>", "", str(coloured(text, name))))
    assert plain.rstrip("\n") == text.rstrip("\n")
    assert plain.startswith("\n\n")


def test_code_that_would_take_long_is_shown_as_it_is() -> None:
    assert "<span" not in coloured("x = 1\n" * MOST_COLOURED, "a.py")
    assert "<span" not in coloured("x = '" + "y" * 5_000, "a.py")
    assert "\x1b" not in coloured("\x1b[31m", "a.py")


def test_words_are_marked_whatever_their_case_and_signs() -> None:
    assert marked("a<b> A<B>", ["a<b>"]) == ("<mark>a&lt;b&gt;</mark> <mark>A&lt;B&gt;</mark>")
    assert marked("<i>", []) == "&lt;i&gt;"
