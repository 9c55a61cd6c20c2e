"""`foredeck bench lifecycle`: every case of a session's life, on both stores and versions of Pi."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import coloured, print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command

_SIGNS = {"passed": "ok", "failed": "FAILED", "not applicable": "-"}


def _run(args: Namespace) -> int:
    from foredeck_bench.lifecycle.run import Choice, run_lifecycle

    if args.list:
        return _print_list(args)
    choice = Choice(tuple(args.section), tuple(args.only), args.rounds, args.workers)
    with Progress("running") as progress:
        found = run_lifecycle(choice, lambda note: progress.advance(note=note))
    if args.json:
        print_json(found)
    else:
        _print_matrix(found)
    return 0 if found["ok"] else 1


def _print_list(args: Namespace) -> int:
    from foredeck_bench.lifecycle.cases import CASES, TITLES

    if args.json:
        print_json([{"section": c.section, "case": c.text, "tests": list(c.tests)} for c in CASES])
    else:
        print(table([(f"{c.section} {TITLES[c.section]}", c.text) for c in CASES]))
    return 0


def _print_matrix(found: dict[str, Any]) -> None:
    rows: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for cell in found["matrix"]:
        rows[cell["section"], cell["case"]][f"{cell['store']} {cell['pi']}"] = cell
    places = list(dict.fromkeys(f"{c['store']} {c['pi']}" for c in found["matrix"]))
    shown = [("", *places, "")]
    section = ""
    for (title, case), cells in rows.items():
        if title != section:
            section = title
            shown.append((coloured(title, "bold"), *["" for _ in places], ""))
        states = [_SIGNS[cells[place]["state"]] for place in places]
        notes = [c["note"] for c in cells.values() if c["state"] != "passed"]
        shown.append((f"  {case}", *states, "; ".join(dict.fromkeys(notes))))
    print(table(shown))
    print(
        f"\n{found['passed']} passed, {found['failed']} failed, "
        f"{found['not_applicable']} not applicable (-)"
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--section",
        metavar="N",
        action="append",
        default=[],
        choices=[str(n) for n in range(1, 10)],
        help="only one group of cases: 1 branches, 2 compaction, 3 models, 4 crashes, 5 several "
        "agents, 6 other extensions, 7 watching, 8 security, 9 forgetting; may be repeated",
    )
    parser.add_argument(
        "--only",
        metavar="WORDS",
        action="append",
        default=[],
        help="only cases whose text has these words; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=int,
        default=10,
        help="crash rounds per store and version of Pi, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        default=1,
        help="tests at once (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run every case of a session's life against SQLite and XTDB and the supported versions\n"
        "of Pi, and print a matrix: passed, failed, or not applicable with the reason. The cases\n"
        "are tests of a checkout, most of them through the real Pi; what they need is installed\n"
        "there first. Takes half an hour or more. Exit code 1 if a case failed."
    ),
    example="foredeck bench lifecycle --section 1 --json",
    configure=_configure,
    run=_run,
)
