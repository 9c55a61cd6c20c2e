"""The pages in a real browser: readable by everybody, running and fetching nothing of what is
stored, and usable by keys. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from processes import run_program

from .conftest import Served

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIDY, HOSTILE = "0199aaaa-tidy", "0199bbbb-hostile"


@pytest.fixture(scope="module")
def chromium() -> str:
    """The browser of this machine; FOREDECK_TEST_CHROMIUM names another."""
    named = os.environ.get("FOREDECK_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("needs Chromium on the path, or its file in FOREDECK_TEST_CHROMIUM")
    return found


def _browsed(
    served: Served, chromium: str, checkout: Path, pages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    node = checkout / "node_modules" / ".bin" / "node"
    script = Path(__file__).with_name("browse.mjs")
    arguments = [str(node), str(script), chromium, served.base, served.token]
    if pictures := os.environ.get("FOREDECK_TEST_PICTURES"):
        arguments.append(pictures)
    run = run_program(*arguments, input=json.dumps(pages), timeout=580)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert isinstance(found, list)
    return found


def _object(served: Served, name: str) -> str:
    listed: Any = served.value(f"/search.json?contains={name}")["objects"]
    return str(listed[0]["object"])


@pytest.mark.long
@pytest.mark.timeout(600)  # some thirty pages, each with all of axe-core's rules
def test_every_page_can_be_read_by_everybody(served: Served, chromium: str, checkout: Path) -> None:
    note, code = _object(served, "plan.md"), _object(served, "tide.py")
    paths = [
        "/overview",
        f"/sessions/{TIDY}",
        f"/sessions/{TIDY}?view=turns",
        f"/sessions/{TIDY}?view=noted",
        f"/sessions/{TIDY}?text=spring_tide",
        f"/sessions/{TIDY}/calls/3",
        f"/compare?left={TIDY}&right={HOSTILE}",
        f"/objects/{code}?lines=1",
        f"/objects/{code}?base=1",
        f"/objects/{note}",
        "/search",
        "/search?q=spring_tide",
        "/notes",
        "/tasks",
        "/memory",
        "/settings",
        "/nothing-here",
    ]
    # Both themes and both widths, each of them with the other's: axe's rules take long.
    pages = [{"path": path, "scheme": "light", "width": 1280} for path in paths]
    pages += [{"path": path, "scheme": "dark", "width": 480} for path in paths]
    shown = ("/overview", f"/sessions/{TIDY}", f"/sessions/{TIDY}?view=turns")
    pages += [{"path": path, "scheme": "dark", "width": 1280} for path in shown]
    pages += [{"path": path, "scheme": "light", "width": 480} for path in shown]
    for page in _browsed(served, chromium, checkout, pages):
        where = (page["path"], page["scheme"])
        assert page["violations"] == [], where
        assert page["wider"] is False, where
        missing = page["path"] == "/nothing-here"
        assert [e for e in page["errors"] if not (missing and "404" in e)] == [], where
        assert page["elsewhere"] == [], where


def test_nothing_that_is_stored_runs_or_is_fetched(
    served: Served, chromium: str, checkout: Path
) -> None:
    evil = _object(served, "evil")
    paths = [
        f"/sessions/{HOSTILE}/calls/2",
        f"/sessions/{HOSTILE}?view=turns&message=2",
        f"/objects/{evil}",
        f"/objects/{evil}?lines=1",
        "/notes",
        "/search?q=%3Cscript%3Efetch",
    ]
    pages = [{"path": path, "scheme": "light", "width": 1280} for path in paths]
    for page in _browsed(served, chromium, checkout, pages):
        assert (page["errors"], page["elsewhere"], page["dialogs"]) == ([], [], []), page["path"]
        assert page["memory"] < 50_000_000, page["path"]
