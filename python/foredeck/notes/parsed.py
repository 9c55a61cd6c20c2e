"""What a Markdown file says besides its text: references, tags, headings and properties.

Positions are character offsets (code points) into the text as it is stored, the end exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["wiki", "markdown", "id"]
"""How it is written; `id` where foredeck recorded it in a field that holds ids."""
MENTIONS = "mentions"
EMBEDS = "embeds"
CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Reference:
    """One link in a document, as it is written.

    `target` is what is referred to, without heading and label: an id, `@12`, a nickname, a title or
    a path. A link with a version (`[[@12 v3]]`) is static: it means that version for good; any
    other is dynamic and means the newest. `relation` is the property that holds the link
    (`parent: "[[a]]"`), for one in the text `mentions`, for an embedded one `embeds`. `heading`
    is also a block (`^id`). `field` is where it is: `content`, or `frontmatter.parent`. `part`:
    the field of the target that it means (`[[Tides::frontmatter.parent]]`), unless something is
    called so as a whole.
    """

    target: str
    relation: str = MENTIONS
    embed: bool = False
    heading: str | None = None
    label: str | None = None
    version: int | None = None
    field: str = CONTENT
    start: int = 0
    end: int = 0
    style: Style = "wiki"
    part: str | None = None

    @property
    def whole(self) -> str:
        """What is referred to with its field, as it is written."""
        return self.target if self.part is None else f"{self.target}::{self.part}"

    @property
    def static(self) -> bool:
        """Whether it means one version for good."""
        return self.version is not None


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag without its `#`, as it is written; `a/b` lies within `a`."""

    name: str
    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NoteHeading:
    """A heading: its level from 1, its text as it is written, and where its line begins."""

    level: int
    text: str
    start: int


@dataclass(slots=True)
class ParsedNote:
    """All that was found in one Markdown text, in its order there.

    `properties` is the frontmatter as JSON values. `problems` are sentences about what was passed
    over, such as frontmatter that is no YAML. `is_cut`: only its frontmatter was read, since the
    text is too long or takes too long.
    """

    references: list[Reference] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    headings: list[NoteHeading] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_cut: bool = False

    @property
    def title(self) -> str | None:
        """The property `title`, else the first heading of level 1."""
        named = self.properties.get("title")
        if isinstance(named, str | int | float) and str(named).strip():
            return str(named).strip()
        return next((h.text for h in self.headings if h.level == 1 and h.text), None)

    @property
    def aliases(self) -> list[str]:
        """Other names that the note gives itself."""
        return words_of(self.properties.get("aliases", self.properties.get("alias")), ",")

    @property
    def kind(self) -> str | None:
        """The property `kind`, such as `note`."""
        kind = self.properties.get("kind")
        return kind if isinstance(kind, str) else None


def words_of(value: Any, separator: str | None = None) -> list[str]:
    """A property that is one text or a list of them, as a list; other values are left out."""
    if isinstance(value, str):
        return [word for part in value.split(separator) if (word := part.strip())]
    if isinstance(value, list):
        return [str(word).strip() for word in value if isinstance(word, str | int)]
    return []
