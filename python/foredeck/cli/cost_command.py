"""`foredeck cost`: what sessions have cost, and why each lost cache hit was lost."""

from __future__ import annotations

import sys
from argparse import Namespace

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.asked import AskedAccount, asked_account, stored_questions
from foredeck.accounting.bookkeeping import stored_account
from foredeck.cli.common import resolve_config
from foredeck.cli.cost_overview import Overview, add_histories, add_stored, overview_text
from foredeck.cli.cost_text import cost_text
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.prompts import NamedSession, named_session, replay_options
from foredeck.cli.report_text import print_report
from foredeck.cli.stored import opened_store
from foredeck.errors import NotFound
from foredeck.histories.finding import history_files, usual_folders
from foredeck.store.registry import store_kind


def run(args: Namespace) -> int:
    """`foredeck cost`."""
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
