"""`foredeck cost`: what sessions have cost, and why each lost cache hit was lost."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.common import add_config_flags, add_json_flag, positive, resolve_config
from foredeck.cli.cost_text import cost_text
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store
from foredeck.store.registry import store_kind

if TYPE_CHECKING:
    from foredeck.accounting.account import Account
    from foredeck.accounting.asked import AskedAccount


def _run(args: Namespace) -> int:
    if args.all or args.histories or args.session is None:
        return _overview(args)
    path = Path(args.session)
    name, account, asked = (*_recorded(args, path), None) if path.is_file() else _stored(args)
    if args.json:
        own = {} if asked is None else {"asked": asked.to_json()}
        print_json(
            {"session": name, "figure": account.figure.to_json(), **account.to_json(), **own}
        )
    else:
        print(cost_text(name, account, asked, every_call=args.calls))
    return 0


def _overview(args: Namespace) -> int:
    from foredeck.cli.cost_overview import Overview, add_histories, add_stored, overview_text
    from foredeck.histories.finding import history_files, usual_folders

    overview = Overview()
    config = resolve_config(args).config
    if store_kind(config.store).exists(config):
        with opened_store(args) as store:
            add_stored(overview, store)
    histories = args.histories is not None
    if histories:
        files = (
            list(history_files(args.histories))
            if args.histories
            else [file for folder in usual_folders() for file in folder.files]
        )
        add_histories(overview, files, lambda text: print(text, file=sys.stderr))
    if args.json:
        print_json(overview.to_json())
    else:
        print(overview_text(overview, histories=histories))
    return 0


def _stored(args: Namespace) -> tuple[str, Account, AskedAccount]:
    from foredeck.accounting.account import AccountingMethod
    from foredeck.accounting.asked import asked_account, stored_questions
    from foredeck.accounting.bookkeeping import stored_account
    from foredeck.lookup.finding import find_session, without_calls

    method = AccountingMethod(args.cache, args.ttl)
    with opened_store(args) as store, Progress("reading calls") as progress:
        session = find_session(store, args.session)
        if not store.query("call", {"session": session}, limit=1):
            raise without_calls(store, session)
        asked = asked_account(stored_questions(store, session))
        return session, stored_account(store, session, method, progress.advance), asked


def _recorded(args: Namespace, path: Path) -> tuple[str, Account]:
    from foredeck.replay.options import ReplayOptions
    from foredeck.replay.recorded_account import recorded_account

    config = resolve_config(args).config
    options = ReplayOptions(
        layout=config.layout,
        policy=config.policy,
        settings=tuple(args.set),
        ttl_s=args.ttl or ReplayOptions().ttl_s,
        cache=args.cache or ReplayOptions().cache,
        prices=args.prices,
    )
    with Progress("replaying") as progress:
        return path.name, recorded_account(path, options, progress.advance)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION|FILE",
        nargs="?",
        help="a stored session: its id, the start of one, or its name; or a session file of Pi, "
        "Claude Code or Codex, which is replayed for this",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="all stored sessions on one page, by week and project (the default without SESSION)",
    )
    parser.add_argument(
        "--histories",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="--all, with what Pi, Claude Code and Codex have kept (in PATH, else in their usual "
        "folders): what would foredeck have saved there? Nothing is stored",
    )
    parser.add_argument("--calls", action="store_true", help="print every call of a long session")
    parser.add_argument(
        "--cache",
        choices=("ideal", "anthropic", "openai"),
        help="by whose prompt cache's rule to look for lost hits (default: that of the model's "
        "wire, for a file ideal)",
    )
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=positive,
        help="after how long the cache expires (default: as the model record says, else 300)",
    )
    parser.add_argument(
        "--prices",
        metavar="P",
        default="anthropic",
        help="for a file: by what the replay decides, anthropic (default), openai, no-cache, or a "
        "JSON file of prices; a stored session has its own",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Show what sessions have cost in money, beside what plain Pi would have sent at the same\n"
        "calls; without SESSION all that are stored, by week and project. For one session: each\n"
        "call, each rebase with its reason and what it has paid back since, and why each lost\n"
        "cache hit was lost. A loss that nothing explains is a defect, please report it.\n"
        "Cost is that of the prompts, foredeck's own questions included; plain Pi's side has\n"
        "everything in full, compacted where the window is full, without foredeck's tools. It is\n"
        "in dollars, or in uncached input tokens where a model has no price. ~ marks an estimate.\n"
        "A file is replayed on a private store, and priced by list prices.\n"
        "JSON: `figure` (calls, plain_pi, foredeck, questions, saved, unit), `calls`, `rebases`,\n"
        "`total`, `asked`; with --all `total`, `weeks`, `projects`."
    ),
    example="foredeck cost 0199",
    configure=_configure,
    run=_run,
)
