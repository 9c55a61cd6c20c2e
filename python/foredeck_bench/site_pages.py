"""What the documentation site has beside docs/: the README and the changelog.

A hook of MkDocs (mkdocs.yml). The two lie above docs/ and link into it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ABOVE = {"README.md": "about.md", "CHANGELOG.md": "changelog.md"}
"""The names of these files on the site."""

_LINK = re.compile(r"(\]\(|src=\"|srcset=\")(docs/|(?:README|CHANGELOG)\.md)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from above docs/."""
    root = Path(config.config_file_path).parent
    for name, page in ABOVE.items():
        content = moved_links((root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=content))
    return files


def moved_links(text: str) -> str:
    """The text with its links as they are from within docs/."""
    return _LINK.sub(lambda found: found[1] + ABOVE.get(found[2], ""), text)
