"""`foredeck cost`: what sessions have cost, and why each lost cache hit was lost."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.asked import AskedAccount, asked_account, stored_questions
from foredeck.accounting.bookkeeping import stored_account
from foredeck.cli.common import add_config_flags, add_json_flag, positive, resolve_config
from foredeck.cli.cost_overview import Overview, add_histories, add_stored, overview_text
from foredeck.cli.cost_text import cost_text
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.prompts import NamedSession, add_session, named_session, replay_options
from foredeck.cli.registry import Command
from foredeck.cli.report_text import add_report_flags, print_report
from foredeck.cli.stored import opened_store
from foredeck.errors import NotFound
from foredeck.histories.finding import history_files, usual_folders
from foredeck.store.registry import store_kind


def _run(args: Namespace) -> int:
    if args.session is None and (args.report or args.html):
        raise NotFound("which session? `foredeck cost SESSION --report`.")
    if args.all or args.histories is not None or args.session is None:
        return _overview(args)
    with named_session(args) as named:
        if args.report or args.html:
            print_report(named, args)
            return 0
        account, asked = _account(named, args)
    if args.json:
        own = {} if asked is None else {"asked": asked.to_json()}
        print_json(
            {"session": named.name, "figure": account.figure.to_json(), **account.to_json(), **own}
        )
    else:
        print(cost_text(named.name, account, asked, every_call=args.calls))
    return 0


def _overview(args: Namespace) -> int:
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


def _account(named: NamedSession, args: Namespace) -> tuple[Account, AskedAccount | None]:
    """The account of a session; with what foredeck asked, of one that it saw."""
    # Loads the engine, which a stored session has no use for.
    from foredeck.replay.recorded_account import recorded_account

    if named.recording is not None:
        calls = len(named.recording.calls)
        with Progress("replaying call", calls) as progress:
            options = replay_options(args)
            return recorded_account(named.recording, options, progress.advance), None
    store = named.store
    assert store is not None  # only what is stored has no recording
    method = AccountingMethod(args.cache, args.ttl)
    with Progress("reading calls") as progress:
        asked = asked_account(stored_questions(store, named.session))
        return stored_account(store, named.session, method, progress.advance), asked


def _configure(parser: ArgumentParser) -> None:
    add_session(parser, optional=True)
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
        help="--all, with the histories that Pi, Claude Code and Codex have kept (in PATH, or else "
        "in their usual folders): what would foredeck have saved? Nothing is stored",
    )
    parser.add_argument("--calls", action="store_true", help="print every call of a long session")
    parser.add_argument(
        "--cache",
        choices=("ideal", "anthropic", "openai"),
        help="the prompt cache whose rule is used to find lost hits (default: the one of the "
        "model's API; ideal for a replay)",
    )
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=positive,
        help="after how long the cache expires (default: what is recorded for the model, or 300)",
    )
    parser.add_argument(
        "--prices",
        metavar="P",
        default="anthropic",
        help="for a replay: the prices that it plans by: anthropic (default), openai, no-cache, or "
        "a JSON file; recorded sessions have their own",
    )
    add_report_flags(parser)
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Show what sessions cost beside plain Pi at the same calls: in dollars, or in uncached\n"
        "input tokens where a model has no price. Without SESSION, all stored sessions by week\n"
        "and project. Of one session: every call, every rebase with its reason and what it has\n"
        "paid back, and why each lost cache hit was lost; --report has its files and commands.\n"
        "\n"
        "The cost is that of the prompts, foredeck's own questions included. Plain Pi's side has\n"
        "everything in full, compacted when the window is full, without foredeck's tools. ~ marks\n"
        "an estimate. A session that foredeck did not see is replayed from its file, and priced\n"
        "by list prices. If a loss has no explanation, please report it: it is a bug.\n"
        "\n"
        "JSON: `figure` (calls, plain_pi, foredeck, questions, saved, unit), `calls`, `rebases`,\n"
        "`total`, `asked`; with --all `total`, `weeks`, `projects`; with --report `session`,\n"
        "`calls`, `figure`, `files` (path, added, removed, diff), `unversioned`, `failed`,\n"
        "`folded`, `asked_back`."
    ),
    example="foredeck cost 0199",
    configure=_configure,
    run=_run,
)
