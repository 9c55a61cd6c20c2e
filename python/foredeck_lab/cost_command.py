"""`foredeck cost`: what sessions have cost, and why cache hits were lost."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from foredeck.accounting.account import (
    Account,
    AccountingMethod,
    AccountLine,
    RebaseBalance,
    runs_of,
)
from foredeck.accounting.bookkeeping import account_of, stored_account
from foredeck.accounting.figure import (
    AskedSum,
    asked_lines,
    asked_sums,
    stored_questions,
    unpriced_lines,
)
from foredeck.accounting.stored import StoredCalls
from foredeck.cli.output import Progress, answer, filled, fitted_table
from foredeck.cli.stored import store_if_any
from foredeck.context.messages.shape import to_usage
from foredeck.errors import NotFound
from foredeck.model.call_values import LOSSES, SHORT_REASONS, Decision
from foredeck.model.figures import counted, model_name, money, short_count, when
from foredeck_agents.histories.recordings import history_files, usual_places
from foredeck_lab.cost_overview import Overview, add_histories, add_stored, overview_text
from foredeck_lab.prompts import NamedSession, named_session, replayed_for


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
        overview.looked_in = args.histories or [place for _, place in usual_places()]
        # Of the usual places few are there; one that was named and is not there is an error.
        if gone := [path for path in args.histories if not path.exists()]:
            raise NotFound(f"{gone[0]} does not exist.")
        listed = args.histories or filter(Path.exists, overview.looked_in)
        add_histories(overview, history_files(listed))
    return answer(args, overview.to_json(), lambda: overview_text(overview, histories=histories))


def _account(named: NamedSession, args: Namespace) -> tuple[Account, Mapping[str, AskedSum] | None]:
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
"""A session with more calls shows those where something happened."""

_HEAD = ("call", "time", "plain", "sent", "cached", "counted", "plain's", "cost", "what")
_NOTE = """\
plain, sent: tokens of plain Pi's prompt and of foredeck's; cached: how many of those sent the
cache still has{counted}; plain's, cost: what the two prompts cost{unit}; what: why the prompt was
rewritten, and tokens that were cached and had to be sent again, by cause."""
_COUNTED = ", counted: how many the provider says it found"
_REBASE_NOTE = """\
call, why: at which the prompt was rewritten; shorter by: tokens that left it; reasoning: tokens of
reasoning among them; lost: tokens that were cached and had to be sent again; paid: what that cost
more than reading them; back: what the shorter prompts have cost less since{unit}. --json says what
each decision weighed."""
_IN_TOKENS = ", in uncached input tokens"
_IDEAL = ", every prefix that was sent before is found"


def cost_text(
    name: str,
    account: Account,
    asked: Mapping[str, AskedSum] | None = None,
    *,
    every_call: bool = False,
) -> str:
    if not account.lines:
        return f"Session {name} has made no call yet."
    said = (f"{account.figure.sentence}.", *unpriced_lines(account.figure.unpriced))
    parts = ["\n".join(map(filled, said)), _title(name, account)]
    parts.append(_calls(account, every_call=every_call))
    if account.rebases:
        parts.append(_rebases(account))
    parts.append(_lost(account))
    if lost := account.reasoning.text:
        parts.append(filled(f"Lost to the model: {lost}."))
    reported = _reported(account)
    own = _asked(asked)
    return "\n\n".join(part for part in (*parts, own, reported) if part)


def _title(name: str, account: Account) -> str:
    models = ", ".join(dict.fromkeys(model_name(line.model) for line in account.lines))
    measured = (
        f"measured over {counted(account.reports, 'call')}"
        if account.reports
        else "fitted to the recorded usage"
        if account.reported == "plain"
        else "an estimate: no provider has counted yet"
    )
    lines = (
        name,
        f"{counted(len(account.lines), 'call')}, {models}",
        f"cache: {account.cache}{_IDEAL if account.cache == 'ideal' else ''}; "
        f"expires after {account.ttl_s:g} s",
        f"{account.rate:.2f} characters a token ({measured})",
    )
    return "\n".join(map(filled, lines))


def _calls(account: Account, *, every_call: bool) -> str:
    lines = account.lines
    if len(lines) > ALL_CALLS and not every_call:
        lines = [line for line in lines if line.lost or line.kind == "rebase"]
    left = len(account.lines) - len(lines)
    if not lines:
        return f"No call lost anything, and none was rewritten (--calls shows all {left:,})."
    rows, is_counted = [_HEAD, *_rows(account, lines)], account.compared and _is_ours(account)
    if not is_counted:
        rows = [(*row[:5], *row[6:]) for row in rows]
    note = _NOTE.format(counted=_COUNTED if is_counted else "", unit=_unit(account))
    parts = [fitted_table(rows, goes_on=True), filled(note)]
    if left:
        parts.append(f"{counted(left, 'further call')} lost nothing (--calls shows them)")
    return "\n".join(parts)


def _is_ours(account: Account) -> bool:
    return account.reported == "ours"


def _unit(account: Account) -> str:
    return "" if any(line.price for line in account.lines) else _IN_TOKENS


def _rows(account: Account, lines: list[AccountLine]) -> Iterator[tuple[str, ...]]:
    is_ours, in_tokens = _is_ours(account), bool(_unit(account))
    days = {when(line.time_ms).split(" ", 1)[0] for line in account.lines}
    for line in lines:
        time = when(line.time_ms)
        shown = time[5:16] if len(days) > 1 else time[11:]
        yield _call(line, shown, is_ours=is_ours, in_tokens=in_tokens)


def _call(line: AccountLine, time: str, *, is_ours: bool, in_tokens: bool) -> tuple[str, ...]:
    ours, costs = line.ours, (line.plain.cost, line.ours.cost)
    # What has no price is blank beside dollars.
    dollars = [money(cost * line.price / 1_000_000) if line.price else "" for cost in costs]
    return (
        str(line.call),
        time,
        short_count(line.plain.tokens),
        short_count(ours.tokens),
        short_count(ours.cached),
        short_count(line.reported.read) if line.reported and is_ours else "-",
        *(map(short_count, costs) if in_tokens else dollars),
        "; ".join(_happened(line)),
    )


def _happened(line: AccountLine) -> Iterator[str]:
    if words := Decision(line.kind, line.reason).short_words:
        yield words
    for cause, tokens in line.lost.items():
        yield f"{'rewriting' if cause in LOSSES else cause} {short_count(tokens)}"
    if line.reasoning.dropped:
        yield f"reasoning dropped {short_count(line.reasoning.dropped_tokens)}"


def _rebases(account: Account) -> str:
    head = ("call", "why", "shorter by", "reasoning", "lost", "paid", "back")
    in_tokens = bool(_unit(account))
    rows = (_run(run, in_tokens=in_tokens) for run in runs_of(account.rebases))
    note = filled(_REBASE_NOTE.format(unit=_unit(account)))
    return f"{fitted_table([head, *rows])}\n{note}"


def _run(run: Sequence[RebaseBalance], *, in_tokens: bool) -> tuple[str, ...]:
    first, last = run[0].call, run[-1].call
    sums = run if in_tokens else [rebase.money for rebase in run]
    paid, back = sum(each.paid for each in sums), sum(each.back for each in sums)
    return (
        str(first) if first == last else f"{first}-{last}",
        ", ".join(dict.fromkeys(SHORT_REASONS.get(rebase.reason, rebase.reason) for rebase in run)),
        short_count(sum(rebase.saved for rebase in run)),
        short_count(sum(rebase.reasoning for rebase in run)),
        short_count(sum(rebase.lost for rebase in run)),
        *(map(short_count, (paid, back)) if in_tokens else map(money, (paid, back))),
    )


def _lost(account: Account) -> str:
    if not account.lost:
        return "No cache hit was lost."
    lines = [f"  {LOSSES.get(c, c)}: {short_count(n)}" for c, n in account.lost.most_common()]
    text = "\n".join(["Tokens that were in the cache and had to be sent again:", *lines])
    if account.lost["unexplained"]:
        cause = "a defect of foredeck, the provider's doing, or that of an extension"
        return f"{text}\n{filled(f'What is unexplained is {cause} loaded after foredeck.')}"
    return text


def _asked(asked: Mapping[str, AskedSum] | None) -> str:
    if not asked:
        return ""
    cost = sum(each.cost for each in asked.values())
    head = f"Of this, foredeck's own questions to a model: {money(cost)}"
    return "\n".join([head, *(f"  {line}" for line in asked_lines(asked))])


def _reported(account: Account) -> str:
    rows = list(_compared(account))
    if not rows:
        return ""
    whose = "foredeck's" if account.reported == "ours" else "plain Pi's, as recorded"
    head = f"Reported by the provider over {counted(account.compared, 'call')} ({whose}):"
    return "\n".join([head, *(f"  {row}" for row in rows)])


def _compared(account: Account) -> Iterator[str]:
    for name, predicted, reported in account.comparison():
        if predicted and not reported:
            yield f"{name}: predicted {short_count(predicted)}, none reported"
            continue
        apart = f" ({100 * (reported / predicted - 1):+.1f}%)" if predicted else ""
        yield f"{name}: predicted {short_count(predicted)}, reported {short_count(reported)}{apart}"
