"""`foredeck working`: the page that a project, or a session, keeps."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.files import edited, given_text
from foredeck.cli.output import print_content, print_json
from foredeck.cli.person import agent_above
from foredeck.cli.stored import made_store, opened_store
from foredeck.errors import Conflict, ForedeckError, NotFound
from foredeck.model.documents import Provenance
from foredeck.names import find_session
from foredeck.sources.projects import project_at
from foredeck.store.protocol import Store
from foredeck.working import PageRefused, WorkingMemory, open_page


def run(args: Namespace) -> int:
    """`foredeck working`."""
    writes = args.edit or args.text is not None
    with (made_store if writes else opened_store)(args) as store:
        page = _page(args, store)
        if args.edit:
            _edit(page)
        elif args.text is not None:
            page.put(args.section, given_text(args.text))
        _show(args, page)
    return 0


def _page(args: Namespace, store: Store) -> WorkingMemory:
    config = resolve_config(args).config
    generator = "human" if agent_above(config.home) is None else "agent"
    by = Provenance(origin="foredeck", generator=generator)
    if args.session is None:
        project = project_at(config, str(Path.cwd()))
        return open_page(config, store, "resource", project.id, by)
    return open_page(config, store, "thread", find_session(store, args.session), by)


def _show(args: Namespace, page: WorkingMemory) -> None:
    page_now = page.read()
    if args.json:
        print_json(
            {
                "id": page.id,
                "scope": page.scope,
                "version": page_now.token,
                "chars": len(page_now.text),
                "max_chars": page.max_chars,
                "content": page_now.text,
                "shown": page.shown(),
            }
        )
    elif args.section is None:
        print_content(page_now.text)
    else:
        parts = {name.casefold(): text for name, text in page.form.parts(page_now.text).items()}
        if args.section.casefold() not in parts and args.text is not None:
            parts[args.section.casefold()] = f"Section {args.section} is removed."
        if args.section.casefold() not in parts:
            raise NotFound(
                f"no section {args.section!r}; the sections are: {', '.join(filter(None, parts))}"
            )
        print_content(parts[args.section.casefold()] + "\n")


def _edit(page: WorkingMemory) -> None:
    before = page.read()
    suffix = ".json" if page.form.name == "json" else ".md"
    with edited(before.text, suffix, "page") as (typed, file):
        try:
            page.replace(typed, before)
        except Conflict:
            raise ForedeckError(
                f"someone else changed the page meanwhile. Your text is in {file}: add it "
                "with `foredeck working --edit`."
            ) from None
        except PageRefused as refusal:
            raise ForedeckError(f"{refusal} What you wrote is in {file}.") from refusal
