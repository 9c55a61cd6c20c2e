"""One page in the store: reading it, and changing it so that no section is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from foredeck.errors import ForedeckError
from foredeck.model.documents import Provenance
from foredeck.model.json_schema import faults
from foredeck.model.memory import MemoryScope, WorkingDocument, working_id
from foredeck.model.quoting import one_line
from foredeck.store.protocol import Batch, Store, Token, changed
from foredeck.working.markdown import TEMPLATE, page_of, put_section, sections_of, shown


class PageRefused(ForedeckError):
    """A page, or a section of one, that cannot be kept; says what to do instead."""


class PageForm(Protocol):
    """What a page may be, and how it is changed and shown."""

    @property
    def name(self) -> str:
        """`markdown` or `json`."""
        ...

    def empty(self) -> str:
        """The page before anybody has written it."""

    def put(self, page: str, section: str, text: str) -> str:
        """The page with one section replaced. Raises `PageRefused`."""

    def check(self, page: str) -> str:
        """The page as it is kept. Raises `PageRefused`."""

    def shown(self, page: str) -> str:
        """What of it says anything."""

    def parts(self, page: str) -> dict[str, str]:
        """Its sections by name."""


@dataclass(frozen=True, slots=True)
class MarkdownForm:
    """Markdown with sections; a template says which there are at first."""

    template: str = TEMPLATE
    name: str = "markdown"

    def empty(self) -> str:
        """See `PageForm`."""
        return page_of(sections_of(self.template))

    def put(self, page: str, section: str, text: str) -> str:
        """See `PageForm`."""
        if not section.strip() or "\n" in section or section.lstrip().startswith("#"):
            raise PageRefused("A section is named by its heading alone, such as Current Work.")
        return put_section(page, section, text, self.template)

    def check(self, page: str) -> str:
        """See `PageForm`."""
        seen: set[str] = set()
        for part in sections_of(page):
            if part.name and part.name.casefold() in seen:
                raise PageRefused(
                    f'Two sections are called "{one_line(part.name)}": make them one.'
                )
            seen.add(part.name.casefold())
        return page_of(sections_of(page))

    def shown(self, page: str) -> str:
        """See `PageForm`."""
        return shown(page, self.template)

    def parts(self, page: str) -> dict[str, str]:
        """See `PageForm`."""
        return {part.name: self.shown(page_of([part])) for part in sections_of(page)}


@dataclass(frozen=True, slots=True)
class JsonForm:
    """A JSON object that fits a schema, which `check_schema` has passed; its sections are its
    fields."""

    schema: Mapping[str, Any] = field(default_factory=dict)
    name: str = "json"

    def empty(self) -> str:
        """See `PageForm`."""
        return "{}\n"

    def put(self, page: str, section: str, text: str) -> str:
        """`text` is JSON, or else a plain string; an empty one removes the field."""
        value = self._load(page)
        if not text.strip():
            value.pop(section, None)
        else:
            try:
                value[section] = json.loads(text)
            except (ValueError, RecursionError):
                value[section] = text
            declared = (self.schema.get("properties") or {}).get(section) or {}
            if declared.get("type") == "string":
                value[section] = text if not isinstance(value[section], str) else value[section]
        return json.dumps(value, ensure_ascii=False)

    def check(self, page: str) -> str:
        """See `PageForm`."""
        value = self._load(page)
        if found := list(faults(value, self.schema)):
            said = one_line("; ".join(found[:3]))
            raise PageRefused(f"Working memory does not fit its schema: {said}.")
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

    def shown(self, page: str) -> str:
        """See `PageForm`."""
        return "\n".join(f"{name}: {text}" for name, text in self.parts(page).items())

    def parts(self, page: str) -> dict[str, str]:
        """See `PageForm`."""
        return {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in self._load(page).items()
            if value not in ("", None, [], {})
        }

    def _load(self, page: str) -> dict[str, Any]:
        try:
            value = json.loads(page)
        except (ValueError, RecursionError) as error:
            raise PageRefused(f"Working memory is JSON here, and this is none: {error}.") from error
        if not isinstance(value, dict):
            raise PageRefused("Working memory is a JSON object here: {...}.")
        return value


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was read. `token` names its version; None: it was not written yet."""

    text: str
    token: Token | None


class WorkingMemory:
    """The page of one project or session.

    `form`: what it may hold; `max_chars`: how long it may be; `by`: who writes here.
    """

    def __init__(
        self,
        store: Store,
        scope: MemoryScope,
        owner: str,
        form: PageForm,
        max_chars: int,
        by: Provenance,
    ) -> None:
        self.scope = scope
        self.form = form
        self.max_chars = max_chars
        self._store = store
        self._owner = owner
        self._by = by
        self.id = working_id(scope, owner)

    def read(self) -> Page:
        """The newest version."""
        head = self._store.head(self.id)
        found = None if head is None else self._store.get(self.id, WorkingDocument, head.token)
        if head is None or found is None:
            return Page(self.form.empty(), None)
        return Page(found.content or self.form.empty(), head.token)

    def shown(self) -> str:
        """What of it says anything; empty until it is written to."""
        page = self.read()
        return "" if page.token is None else self.form.shown(page.text)

    def put(self, section: str, text: str) -> Page:
        """Replace one section, whatever others do to the rest of the page meanwhile.

        Raises `PageRefused`.
        """

        def attempt() -> Page:
            page = self.read()
            return self._write(page, self._checked(self.form.put(page.text, section, text)))

        busy = PageRefused("Others are writing to working memory all the time: try again.")
        return changed(attempt, busy)

    def replace(self, text: str, base: Page) -> Page:
        """Replace the whole page, as long as it still is what `base` was read as.

        Raises `PageRefused`, and `Conflict` where it was changed since.
        """
        return self._write(base, self._checked(text))

    def _checked(self, text: str) -> str:
        kept = self.form.check(text)
        if len(kept) > self.max_chars:
            raise PageRefused(
                f"Working memory would have {len(kept):,} characters, and {self.max_chars:,} are "
                "kept: shorten it."
            )
        return kept

    def _write(self, base: Page, text: str) -> Page:
        if base.token is not None and text == base.text:
            return base
        document = WorkingDocument(
            id=self.id,
            scope=self.scope,
            project=self._owner if self.scope == "resource" else None,
            session=self._owner if self.scope == "thread" else None,
            form="json" if self.form.name == "json" else "markdown",
            content=text,
            provenance=self._by,
        ).seal()
        token = self._store.commit(Batch(puts=[document], expect={self.id: base.token}))
        return Page(text, token)
