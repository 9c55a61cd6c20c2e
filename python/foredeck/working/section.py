"""The pages before the chat, and what the model reads when it changes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.errors import Conflict, ToolError
from foredeck.model.figures import whole_lines
from foredeck.model.memory import MemoryScope
from foredeck.model.quoting import block, quoted
from foredeck.working.memory import Page, PageRefused, WorkingMemory

OF_THIS_SESSION = "For this session:"


@dataclass(frozen=True, slots=True)
class WorkingSection:
    """The section of the head with the project's page, and the session's own below it.

    A section as `context/head/section.py` describes it. What is not filled in is not shown.
    """

    pages: Sequence[WorkingMemory]
    name: str = "working memory"

    def text(self, limit: int) -> str:
        """The pages as far as they fit, with a word on how much is left out."""
        texts = []
        for page in self.pages:
            if said := page.shown():
                own = f"{OF_THIS_SESSION}\n" if page.scope == "thread" else ""
                texts.append(own + block(said))
        return whole_lines("\n".join(texts), limit)


@dataclass(slots=True)
class ContextUpdates:
    """What `update_context` does: writes a section, or a whole page, for one session."""

    pages: Mapping[MemoryScope, WorkingMemory]
    _known: dict[MemoryScope, Page] = field(default_factory=dict)
    """Each page as the session has last seen it."""

    def __post_init__(self) -> None:
        self._known = {scope: page.read() for scope, page in self.pages.items()}

    def update(self, text: str, section: str | None, scope: str = "resource") -> str:
        """Write it. Returns what the model reads. `section`: None for the whole page.

        Raises `ToolError`.
        """
        page = self.pages.get("thread" if scope == "thread" else "resource")
        if page is None:
            raise ToolError(f"There is no working memory of scope {scope!r}.")
        try:
            written = page.put(section, text) if section else self._replace(page, text)
        except PageRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        others = self._changed_by_others(page, written, section)
        self._known[page.scope] = written
        where = f" under {quoted(section)}" if section else ""
        kept = (
            f"Kept in working memory{where} ({len(written.text):,} of {page.max_chars:,} "
            "characters). It stands before the chat from its next rewrite on."
        )
        return f"{kept}\n{others}" if others else kept

    def _replace(self, page: WorkingMemory, text: str) -> Page:
        known = self._known[page.scope]
        try:
            return page.replace(text, known)
        except Conflict:
            newest = self._known[page.scope] = page.read()
            raise ToolError(
                "Another session has changed working memory meanwhile, and nothing was written. "
                f"It says now:\n{block(page.form.shown(newest.text))}\n"
                "Write the section that you mean, or the whole page again with theirs in it."
            ) from None

    def _changed_by_others(self, page: WorkingMemory, written: Page, section: str | None) -> str:
        """What others have written since the session has last seen the page."""
        if section is None:
            return ""
        before = page.form.parts(self._known[page.scope].text)
        own = " ".join(section.split()).casefold()
        changed = [
            text or f"## {name}\n(empty)"
            for name, text in page.form.parts(written.text).items()
            if before.get(name, "") != text and name.casefold() != own
        ]
        return "\n".join(["Changed by another session:", *map(block, changed)]) if changed else ""
