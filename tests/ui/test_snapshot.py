"""`foredeck cost --html`: a session's page in one file, to be shown around."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from foredeck.cli.main import main

from .conftest import SECRET, Served

TIDY, HOSTILE = "0199aaaa-tidy", "0199bbbb-hostile"


def _written(served: Served, file: Path, session: str, *flags: str) -> str:
    assert main(["cost", session, "--home", str(served.home), "--html", str(file), *flags]) == 0
    return file.read_text()


def test_it_is_the_page_of_the_session_with_its_report(served: Served, tmp_path: Path) -> None:
    page = _written(served, tmp_path / "page.html", TIDY)
    assert page.count("<title>call ") == 3
    assert page.count('<tr id="call-') == 3
    assert '<a href="#call-3" tabindex="-1">' in page
    assert '<span class="add">+    return 2\n</span>' in page


def test_nothing_in_it_is_fetched_or_can_run(served: Served, tmp_path: Path) -> None:
    page = _written(served, tmp_path / "page.html", HOSTILE)
    assert "&lt;script&gt;fetch" in page
    assert "\\x1b[31m" in page
    assert page.count("<script") == 1
    assert (
        re.findall(r"\bon\w+=|<img|<link|<iframe", page.replace("&#34;", "").split("<main")[0])
        == []
    )
    assert "default-src &#39;none&#39;" in page
    assert set(re.findall(r'(?:href|src)="([^#"][^"]*)"', page)) == set()


def test_it_is_redacted_unless_full(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = _written(served, tmp_path / "page.html", HOSTILE)
    assert SECRET not in page
    assert str(Path.home()) not in page
    assert "[secret] ~/x" in page
    full = _written(served, tmp_path / "page.html", HOSTILE, "--full")
    assert SECRET in full
    assert "Nothing was left out" in full
    assert "3 calls" in capsys.readouterr().out


def test_to_stdout_and_to_where_nothing_can_be_written(
    served: Served, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    flags = ["cost", TIDY, "--report", "--home", str(served.home), "--html"]
    assert main([*flags, "-", "--json"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"<!doctype html>")
    assert json.loads(err)["session"] == TIDY
    assert main([*flags, str(tmp_path / "none" / "page.html")]) == 1
    assert b"No such file" in capfdbinary.readouterr().err
