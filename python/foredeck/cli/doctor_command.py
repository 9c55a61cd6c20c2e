"""`foredeck doctor`: checks this machine, and says what to do about each finding."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from foredeck.cli.checks.programs import check_programs, check_watcher
from foredeck.cli.checks.state import check_config, check_state, check_stored
from foredeck.cli.common import resolve_config
from foredeck.cli.output import coloured, print_json, typed
from foredeck.cli.progress import Progress
from foredeck.cli.stored import fetch_others, opened_store
from foredeck.derived import LAYERS, load_layer
from foredeck.derived.follower import Follower
from foredeck.finding import Finding
from foredeck.model.figures import counted, short_count

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "red")}


def run(args: Namespace) -> int:
    """`foredeck doctor`."""
    if args.rebuild:
        return _rebuild(args)
    with Progress("checking") as progress:
        findings = []
        for finding in _check(args):
            findings.append(finding)
            progress.advance(note=finding.name)
    sound = all(finding.status == "ok" for finding in findings)
    if args.json:
        print_json({"ok": sound, "checks": [asdict(finding) for finding in findings]})
    else:
        _print_text(findings)
    return 0 if sound else 1


def _check(args: Namespace) -> Iterator[Finding]:
    yield from check_programs()
    config, finding = check_config(args)
    yield finding
    found = list(check_state(config))
    yield from found
    if found[-1].status != "problem":
        yield from check_stored(config, forget_refusals=args.forget_refusals)
    if config.sources.watch:
        yield from check_watcher()


def _print_text(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word, colour = _MARKS[finding.status]
        mark = coloured(word.ljust(7), colour)
        first, *more = finding.text.split("\n")
        print(f"{mark}  {finding.name.ljust(width)}  {first}")
        for line in [*more, *([typed(finding.advice)] if finding.advice else [])]:
            print(f"{'':7}  {'':{width}}  {line}")
    found = [finding for finding in findings if finding.status != "ok"]
    print(
        f"\n{len(findings)} checks, {len(found)} with something to do" if found else "\nAll well."
    )


def _rebuild(args: Namespace) -> int:
    home = resolve_config(args).config.home
    made: list[dict[str, Any]] = []
    with opened_store(args) as store:
        with Progress("fetching, page") as progress:
            fetch_others(store, progress)
        for name in LAYERS if args.rebuild == "all" else [args.rebuild]:
            with (
                Follower(store, load_layer(name), home) as follower,
                Progress(f"{name}: batch") as progress,
            ):
                looked_at = follower.make_again(progress.advance)
                made.append(
                    {
                        "layer": name,
                        "versions": looked_at,
                        "file": str(follower.path),
                        "bytes": follower.path.stat().st_size,
                    }
                )
    if args.json:
        print_json({"layers": made})
        return 0
    for layer in made:
        versions = counted(layer["versions"], "version")
        size = f"{short_count(layer['bytes'])}B"
        print(f"{layer['layer']}: {versions} looked at; {layer['file']} ({size})")
    return 0
