"""Working memory: a page of a project or session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.config import Config
from foredeck.errors import Conflict, ForedeckError, ToolError
from foredeck.model.documents import Provenance
from foredeck.model.figures import whole_lines
from foredeck.model.memory import MemoryScope, WorkingDocument, working_id
from foredeck.model.quoting import block, one_line, quoted
from foredeck.store.protocol import Batch, Token, retry_on_conflict
from foredeck.store.store import Store

TEMPLATE = """\
# Project Context

## Tech Stack
- Language:
- Framework:
- Database:
- Other key dependencies:

## Project Structure
- Main directory:
- Source directory:
- Test directory:

## User Preferences
- Testing framework:
- Code style:
- Other preferences:

## Current Work
- Active feature:
- Blocker:
- Last completed:
"""

_HEADING = re.compile(r"##[ \t]+(\S.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page under a second-level heading; the first part has none."""

    name: str
    body: str


def sections_of(page: str) -> list[PageSection]:
    """A page's parts in order; headings in code blocks do not count."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in page.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            parts.append((heading[1], []))
        else:
            parts[-1][1].append(line)
    return [PageSection(name, "\n".join(lines).strip("\n")) for name, lines in parts]


def page_of(sections: list[PageSection]) -> str:
    texts = [
        "\n".join(filter(None, (f"## {part.name}" if part.name else "", part.body)))
        for part in sections
    ]
    return "\n\n".join(filter(None, texts)) + "\n"


def _body_of(name: str, text: str) -> str:
    # Models like to repeat it.
    first, _, rest = text.lstrip("\n").partition("\n")
    heading = _HEADING.fullmatch(first)
    return rest if heading and _same(heading[1], name) else text


def _same(one: str, other: str) -> bool:
    return bool(one) and " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


class PageRefused(ForedeckError):
    """A page or section that cannot be kept; says what to do instead."""


@dataclass(frozen=True, slots=True)
class PageForm:
    """What a page is: Markdown with sections, initially from a template."""

    template: str = TEMPLATE

    def empty(self) -> str:
        """The unwritten page."""
        return page_of(sections_of(self.template))

    def put(self, page: str, section: str, text: str) -> str:
        """An empty text restores the template's section, or removes it. Raises `PageRefused`."""
        if not section.strip() or "\n" in section or section.lstrip().startswith("#"):
            raise PageRefused("A section is named by its heading alone, such as Current Work.")
        body = _body_of(section, text).strip("\n")
        if not body.strip():
            parts = sections_of(self.template)
            body = next((part.body for part in parts if _same(part.name, section)), "")
        parts_found = sections_of(page)
        replaced = [PageSection(p.name, body) if _same(p.name, section) else p for p in parts_found]
        if not any(_same(part.name, section) for part in parts_found):
            replaced.append(PageSection(" ".join(section.split()), body))
        return page_of([p for p in replaced if p.body.strip() or not _same(p.name, section)])

    def check(self, page: str) -> str:
        """The page as stored. Raises `PageRefused`."""
        titles: set[str] = set()
        for part in sections_of(page):
            if part.name and part.name.casefold() in titles:
                raise PageRefused(
                    f'Two sections are called "{one_line(part.name)}": make them one.'
                )
            titles.add(part.name.casefold())
        return page_of(sections_of(page))

    def shown(self, page: str) -> str:
        """The page without unfilled template lines and empty sections."""
        unfilled = {line.strip() for line in self.template.splitlines() if line.strip()}
        texts = []
        for part in sections_of(page):
            lines = [line for line in part.body.splitlines() if line.strip() not in unfilled]
            body = "\n".join(line.rstrip() for line in lines if line.strip())
            if body:
                texts.append(f"## {part.name}\n{body}" if part.name else body)
        return "\n".join(texts)

    def parts(self, page: str) -> dict[str, str]:
        return {part.name: self.shown(page_of([part])) for part in sections_of(page)}


@dataclass(frozen=True, slots=True)
class Page:
    """A page as read; `token` is None if it was never written."""

    text: str
    token: Token | None


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The page of a project or session.

    `max_chars`: its limit; `_by`: the writer here.
    """

    _store: Store
    scope: MemoryScope
    _owner: str
    form: PageForm
    max_chars: int
    _by: Provenance

    @property
    def id(self) -> str:
        return working_id(self.scope, self._owner)

    def read(self) -> Page:
        """The newest version."""
        head = self._store.head(self.id)
        document = None if head is None else self._store.get(self.id, WorkingDocument, head.token)
        if head is None or document is None:
            return Page(self.form.empty(), None)
        return Page(document.content or self.form.empty(), head.token)

    def shown(self) -> str:
        page = self.read()
        return "" if page.token is None else self.form.shown(page.text)

    def put(self, section: str, text: str) -> Page:
        """Replaces a section. Raises `PageRefused`."""
        # Whatever others do to the rest of the page meanwhile: it is read again at each attempt.

        def attempt() -> Page:
            page = self.read()
            return self._write(page, self._checked(self.form.put(page.text, section, text)))

        busy = PageRefused("Others are writing to working memory all the time: try again.")
        return retry_on_conflict(attempt, busy)

    def replace(self, text: str, base: Page) -> Page:
        """Replaces the page read as `base`. Raises `PageRefused`, and `Conflict` if it changed
        since."""
        return self._write(base, self._checked(text))

    def _checked(self, text: str) -> str:
        page = self.form.check(text)
        if len(page) > self.max_chars:
            raise PageRefused(
                f"Working memory would have {len(page):,} characters, and {self.max_chars:,} are "
                "kept: shorten it."
            )
        return page

    def _write(self, base: Page, text: str) -> Page:
        if base.token is not None and text == base.text:
            return base  # the same text makes no version
        document = WorkingDocument(
            id=self.id,
            scope=self.scope,
            project=self._owner if self.scope == "resource" else None,
            session=self._owner if self.scope == "thread" else None,
            content=text,
            provenance=self._by,
        ).seal()
        token = self._store.commit(Batch(puts=[document], expect={self.id: base.token}))
        return Page(text, token)


OF_THIS_SESSION = "For this session:"


def open_page(
    config: Config, store: Store, scope: MemoryScope, owner: str, by: Provenance
) -> WorkingMemory:
    """The configured page of a project (`resource`) or session (`thread`)."""
    section = config.working
    form = PageForm(section.template or TEMPLATE)
    return WorkingMemory(store, scope, owner, form, section.max_chars, by)


@dataclass(frozen=True, slots=True)
class WorkingSection:
    pages: Sequence[WorkingMemory]
    name: str = "working memory"

    def text(self, limit: int) -> str:
        texts = []
        for page in self.pages:
            if content := page.shown():
                own = f"{OF_THIS_SESSION}\n" if page.scope == "thread" else ""
                texts.append(own + block(content))
        return whole_lines("\n".join(texts), limit)


@dataclass(slots=True)
class ContextUpdates:
    pages: Mapping[MemoryScope, WorkingMemory]
    _known: dict[MemoryScope, Page] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {scope: page.read() for scope, page in self.pages.items()}

    def update(self, text: str, section: str | None, scope: str = "resource") -> str:
        """Writes a section, or the whole page; raises `ToolError`."""
        page = self.pages.get("thread" if scope == "thread" else "resource")
        if page is None:
            raise ToolError(f"There is no working memory of scope {scope!r}.")
        try:
            new_page = page.put(section, text) if section else self._replace(page, text)
        except PageRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        others = self._changed_by_others(page, new_page, section, text)
        self._known[page.scope] = new_page
        where = f" under {quoted(section)}" if section else ""
        old_text = (
            f"Kept in working memory{where} ({len(new_page.text):,} of {page.max_chars:,} "
            "characters). The head shows it from its next rewrite on."
        )
        return f"{old_text}\n{others}" if others else old_text

    def _replace(self, page: WorkingMemory, text: str) -> Page:
        last_seen = self._known[page.scope]
        try:
            return page.replace(text, last_seen)
        except Conflict:
            newest = self._known[page.scope] = page.read()
            raise ToolError(
                "Another session has changed working memory meanwhile, and nothing was written. "
                f"It says now:\n{block(page.form.shown(newest.text))}\n"
                "Write the section that you mean, or the whole page again with theirs in it."
            ) from None

    def _changed_by_others(
        self, page: WorkingMemory, written: Page, section: str | None, said: str
    ) -> str:
        if section is None:
            return ""
        before = page.form.parts(self._known[page.scope].text)
        own = " ".join(section.split()).casefold()
        changed = [
            text or f"## {name}\n(empty)"
            for name, text in page.form.parts(written.text).items()
            if before.get(name, "") != text
            and name.casefold() != own
            and not (text and text.strip() in said)
        ]
        return "\n".join(["Changed by another session:", *map(block, changed)]) if changed else ""
