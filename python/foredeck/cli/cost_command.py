"""`foredeck cost`: what sessions have cost, and why cache hits were lost."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace

from foredeck.accounting.account import Account, AccountingMethod, AccountLine, RebaseBalance
from foredeck.accounting.bookkeeping import account_of, stored_account
from foredeck.accounting.figure import AskedSum, asked_lines, asked_sums, stored_questions
from foredeck.accounting.stored import StoredCalls
from foredeck.cli.cost_overview import Overview, add_histories, add_stored, overview_text
from foredeck.cli.output import Progress, answer, screen_width, table
from foredeck.cli.prompts import NamedSession, named_session, replayed_for
from foredeck.cli.stored import store_if_any
from foredeck.context.messages.shape import to_usage
from foredeck.histories.recordings import history_files, usual_folders
from foredeck.model.figures import counted, money, short_count, when


def run(args: Namespace) -> int:
    """`foredeck cost`."""
    if args.all or args.histories is not None or args.session is None:
        return _overview(args)
    with named_session(args) as named:
        account, asked = _account(named, args)
    own = {} if asked is None else {"asked": {name: s.to_json() for name, s in asked.items()}}
    figure = account.figure.to_json()
    value = {"session": named.name, "figure": figure, **account.to_json(), **own}
    return answer(args, value, lambda: cost_text(named.name, account, asked, every_call=args.calls))


def _overview(args: Namespace) -> int:
    overview = Overview()
    with store_if_any(args) as store:
        if store is not None:
            add_stored(overview, store)
    histories = args.histories is not None
    if histories:
        files = (
            list(history_files(args.histories))
            if args.histories
            else [file for folder in usual_folders() for file in folder.files]
        )
        add_histories(overview, files)
    return answer(args, overview.to_json(), lambda: overview_text(overview, histories=histories))


def _account(named: NamedSession, args: Namespace) -> tuple[Account, Mapping[str, AskedSum] | None]:
    """The account of a session; with what foredeck asked, of one that it saw."""
    if (recording := named.recording) is not None:
        with replayed_for(args, recording) as (done, options):
            calls = zip(StoredCalls(done.store, recording.id), recording.calls, strict=True)
            # The provider's figures are those of the recording.
            reported = [
                replace(made, usage=to_usage(recording.answer_to(call).get("usage")))
                for made, call in calls
            ]
            rate = done.rate.chars_per_token
            method = AccountingMethod(options.cache, options.ttl_s, rate, "plain")
            return account_of(reported, method, done.figure()), None
    store = named.store
    assert store is not None  # only what is stored has no recording
    method = AccountingMethod(args.cache, args.ttl)
    with Progress("reading calls") as progress:
        asked = asked_sums(stored_questions(store, named.session))
        return stored_account(store, named.session, method, progress.advance), asked


# The account of one session in words


ALL_CALLS = 40
"""A session of more calls shows those at which something happened."""

_HEAD = ("call", "time", "plain", "sent", "cached", "counted", "plain's", "cost", "what")
_NOTE = """
plain, sent: tokens of plain Pi's prompt and of foredeck's; cached: what of it
the cache still has, counted: what the provider says it found; plain's, cost: in
uncached input tokens; what: a rebase with its reason, and tokens that the cache
had and that were not found again, by cause."""
_REBASE_NOTE = """
shorter by: tokens that left the prompt; reasoning: of sealed reasoning that
left with them; lost: what was cached and had to be sent again; paid: what that
cost more than reading it; back: what the shorter prompts have cost less since,
in uncached input tokens. --json says what each decision weighed."""
_IDEAL = ", every prefix that was sent before is found"


def cost_text(
    name: str,
    account: Account,
    asked: Mapping[str, AskedSum] | None = None,
    *,
    every_call: bool = False,
) -> str:
    """Tables and totals, as printed. `asked`: what foredeck itself has asked of a model."""
    if not account.lines:
        return f"Session {name} has made no call yet."
    parts = [f"{account.figure.sentence}.", _title(name, account)]
    parts.append(_calls(account, every_call=every_call))
    if account.rebases:
        parts.append(_rebases(account))
    parts.append(_lost(account))
    if lost := account.reasoning.text:
        parts.append(f"Lost to the model: {lost}.")
    reported = _reported(account)
    own = _asked(asked)
    text = "\n\n".join(part for part in (*parts, own, reported) if part)
    return "\n".join(_fitted(line) for line in text.split("\n"))


def _fitted(line: str) -> str:
    """A line that is no wider than the screen: a sentence goes on below, a row is cut."""
    width, line = screen_width(), line.rstrip()
    if len(line) <= width:
        return line
    if "  " in line.strip():
        return f"{line[: width - 1]}…"
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(line, width, subsequent_indent=f"{indent}    ")


def _title(name: str, account: Account) -> str:
    models = ", ".join(dict.fromkeys(line.model for line in account.lines))
    measured = (
        f"measured over {counted(account.reports, 'call')}"
        if account.reports
        else "fitted to the recorded usage"
        if account.reported == "plain"
        else "an estimate: no provider has counted yet"
    )
    return (
        f"{name}\n{counted(len(account.lines), 'call')}, {models}\n"
        f"cache: {account.cache}{_IDEAL if account.cache == 'ideal' else ''}; "
        f"expires after {account.ttl_s:g} s\n"
        f"{account.rate:.2f} characters a token ({measured})"
    )


def _calls(account: Account, *, every_call: bool) -> str:
    lines = account.lines
    if len(lines) > ALL_CALLS and not every_call:
        lines = [line for line in lines if line.lost or line.kind == "rebase"]
    left = len(account.lines) - len(lines)
    if not lines:
        return f"No call lost anything or was a rebase (--calls shows all {left:,})."
    shown = table([_HEAD, *_rows(account, lines)]) + _NOTE
    return (
        f"{shown}\n{counted(left, 'further call')} lost nothing (--calls shows them)"
        if left
        else shown
    )


def _rows(account: Account, lines: list[AccountLine]) -> Iterator[tuple[str, ...]]:
    """Times with their date where the session went on for more than a day."""
    is_ours = account.reported == "ours"
    days = {when(line.time_ms).split(" ", 1)[0] for line in account.lines}
    for line in lines:
        time = when(line.time_ms)
        yield _call(line, time if len(days) > 1 else time.split(" ", 1)[-1], is_ours=is_ours)


def _call(line: AccountLine, time: str, *, is_ours: bool) -> tuple[str, ...]:
    ours = line.ours
    return (
        str(line.call),
        time,
        _k(line.plain.tokens),
        _k(ours.tokens),
        _k(ours.cached),
        _k(line.reported.read) if line.reported and is_ours else "-",
        _k(line.plain.cost),
        _k(ours.cost),
        "; ".join(_happened(line)),
    )


def _happened(line: AccountLine) -> Iterator[str]:
    if line.reason:
        yield f"{line.kind} ({line.reason})"
    yield from (f"{cause} {_k(tokens)}" for cause, tokens in line.lost.items())
    if line.reasoning.dropped:
        yield f"reasoning dropped {_k(line.reasoning.dropped_tokens)}"


def _rebases(account: Account) -> str:
    head = ("rebase", "reason", "shorter by", "reasoning", "lost", "paid", "back")
    return table([head, *map(_rebase, account.rebases)]) + _REBASE_NOTE


def _rebase(rebase: RebaseBalance) -> tuple[str, ...]:
    return (
        f"call {rebase.call}",
        rebase.reason,
        _k(rebase.saved),
        _k(rebase.reasoning),
        _k(rebase.lost),
        _k(rebase.paid),
        _k(rebase.back),
    )


def _lost(account: Account) -> str:
    if not account.lost:
        return "No cache hit was lost."
    lines = [f"  {cause}: {_k(tokens)}" for cause, tokens in account.lost.most_common()]
    text = "\n".join(["Tokens that were in the cache and were not found again:", *lines])
    if account.lost["unexplained"]:
        return (
            f"{text}\nWhat is unexplained is a defect of foredeck, the provider's doing, or that "
            "of an extension\nloaded after foredeck."
        )
    return text


def _asked(asked: Mapping[str, AskedSum] | None) -> str:
    """The questions of foredeck's own, which the figure includes."""
    if not asked:
        return ""
    cost = sum(each.cost for each in asked.values())
    head = f"Of this, foredeck's own questions to a model: {money(cost)}"
    return "\n".join([head, *(f"  {line}" for line in asked_lines(asked))])


def _reported(account: Account) -> str:
    """What the provider counted beside what was predicted."""
    rows = list(_compared(account))
    if not rows:
        return ""
    whose = "foredeck's" if account.reported == "ours" else "plain Pi's, as recorded"
    head = f"Reported by the provider over {counted(account.compared, 'call')} ({whose}):"
    return "\n".join([head, *(f"  {row}" for row in rows)])


def _compared(account: Account) -> Iterator[str]:
    for name, predicted, reported in account.comparison():
        if predicted and not reported:
            yield f"{name}: predicted {_k(predicted)}, none reported"
            continue
        apart = f" ({100 * (reported / predicted - 1):+.1f}%)" if predicted else ""
        yield f"{name}: predicted {_k(predicted)}, reported {_k(reported)}{apart}"


def _k(count: float) -> str:
    return short_count(round(count)) if count >= 0 else f"-{short_count(round(-count))}"
