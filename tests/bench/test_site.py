"""The documentation site: it is built from docs/ with every link checked, and fetches nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foredeck_bench.site_pages import moved_links

FETCHED = re.compile(
    r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//", re.IGNORECASE
)


def built(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(out)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = built(Path(__file__).resolve().parents[2], out)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_there(site: Path, checkout: Path) -> None:
    pages = {page.stem for page in site.glob("*.html")}
    assert {page.stem for page in (checkout / "docs").glob("*.md")} < pages
    assert {"index", "changelog", "404"} < pages


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    fetching = [page.name for page in site.rglob("*.html") if FETCHED.search(page.read_text())]
    assert fetching == []


def test_a_dead_link_or_anchor_is_an_error(checkout: Path, tmp_path: Path) -> None:
    for name in ("mkdocs.yml", "README.md", "CHANGELOG.md"):
        shutil.copy(checkout / name, tmp_path / name)
    shutil.copytree(checkout / "docs", tmp_path / "docs")
    hook = tmp_path / "python/foredeck_bench"
    hook.mkdir(parents=True)
    shutil.copy(checkout / "python/foredeck_bench/site_pages.py", hook)
    with (tmp_path / "docs/notes.md").open("a") as page:
        page.write("\n[one](nowhere.md) and [two](tasks.md#nowhere)\n")
    done = built(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert "#nowhere" in done.stderr


def test_links_of_the_readme_are_moved() -> None:
    text = '[a](docs/x.md#y) [b](CHANGELOG.md) `docs/x.md` <img src="docs/z.png">'
    moved = '[a](x.md#y) [b](changelog.md) `docs/x.md` <img src="z.png">'
    assert moved_links(text) == moved
