"""`foredeck cost`: what a session has cost, and why each lost cache hit was lost."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.common import add_config_flags, add_json_flag, positive, resolve_config
from foredeck.cli.cost_text import cost_text
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store

if TYPE_CHECKING:
    from foredeck.accounting.account import Account
    from foredeck.accounting.asked import AskedAccount


def _run(args: Namespace) -> int:
    path = Path(args.session)
    name, account, asked = (*_recorded(args, path), None) if path.is_file() else _stored(args)
    if args.json:
        own = {} if asked is None else {"asked": asked.to_json()}
        print_json({"session": name, **account.to_json(), **own})
    else:
        print(cost_text(name, account, asked, every_call=args.all))
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
        help="a stored session: its id, the start of one, or its name; or a session file of Pi, "
        "Claude Code or Codex, which is replayed for this",
    )
    parser.add_argument("--all", action="store_true", help="print every call of a long session")
    parser.add_argument(
        "--cache",
        choices=("ideal", "anthropic", "openai"),
        help="whose prompt cache to charge by (default: that of the model's wire, for a "
        "file ideal)",
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
        help="for a file: anthropic (default), openai, no-cache, or a JSON file of prices; "
        "a stored session has its own",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Say what each call of a session cost with foredeck and what it would have with plain Pi,\n"
        "what was read from the prompt cache, each rebase with its reason and what it has paid\n"
        "back since, and why each lost cache hit was lost. A loss that nothing explains is shown\n"
        "as such: it is a defect, please report it. Of a stored session the prompts are those\n"
        "that went out, and the provider's own figures stand beside the prediction; a file is\n"
        "replayed on a private store. Costs are in tokens of uncached input, and in the currency\n"
        "of Pi's model prices where the model has any.\n"
        "The JSON has `calls` (each with `plain` and `ours`: `tokens`, `cached`, `cost`; `lost`\n"
        "by cause; `reported`), `rebases`, `total`, `asked` (of a stored session: what\n"
        "foredeck itself has asked of a model, by purpose), and what it was counted by:\n"
        "`cache`, `ttl_s`, `chars_per_token`, `reported_calls` (how many counts of the\n"
        "provider that rests on), `reported_of` (`ours` or `plain` prompts)."
    ),
    example="foredeck cost 0199",
    configure=_configure,
    run=_run,
)
