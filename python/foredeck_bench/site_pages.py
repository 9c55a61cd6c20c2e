"""The README and the changelog on the documentation site, by a hook of MkDocs (mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ABOVE = {"README.md": "about.md", "CHANGELOG.md": "changelog.md"}

_LINK = re.compile(r"(\]\(|src=\"|srcset=\")(docs/|(?:README|CHANGELOG)\.md)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from above docs/."""
    root = Path(config.config_file_path).parent
    for name, page in ABOVE.items():
        content = moved_links((root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=content))
    return files


def moved_links(text: str) -> str:
    """Links as they are from within docs/."""
    return _LINK.sub(lambda found: found[1] + ABOVE.get(found[2], ""), text)
