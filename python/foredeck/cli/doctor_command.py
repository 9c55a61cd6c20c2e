"""`foredeck doctor`: checks this machine, and says what to do about each finding."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import resolve_config
from foredeck.cli.machine_checks import check_programs, check_watcher
from foredeck.cli.output import Progress, answer, coloured, typed
from foredeck.cli.stored import fetch_others, opened_store
from foredeck.config import Config, foreign_owner, looser_than_private
from foredeck.derived import LAYERS, load_layer
from foredeck.derived.follower import Follower
from foredeck.errors import ConfigError, ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.memory.trust import KEY_FILE, load_user
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document
from foredeck.model.figures import counted, short_count
from foredeck.model.records import SealsDocument, seals_id
from foredeck.store.kind import open_store, store_kind
from foredeck.store.location import is_network_filesystem
from foredeck.store.protocol import Batch, Store
from foredeck.store.sqlite.backup import ELSEWHERE

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
    value = {"ok": sound, "checks": [asdict(finding) for finding in findings]}
    return answer(args, value, _lines(findings), 0 if sound else 1)


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


def _lines(findings: list[Finding]) -> Iterator[str]:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word, colour = _MARKS[finding.status]
        mark = coloured(word.ljust(7), colour)
        first, *more = finding.text.split("\n")
        yield f"{mark}  {finding.name.ljust(width)}  {first}"
        for line in [*more, *([typed(finding.advice)] if finding.advice else [])]:
            yield f"{'':7}  {'':{width}}  {line}"
    found = sum(finding.status != "ok" for finding in findings)
    yield f"\n{len(findings)} checks, {found} with something to do" if found else "\nAll well."


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
    lines = [
        f"{layer['layer']}: {counted(layer['versions'], 'version')} looked at; "
        f"{layer['file']} ({short_count(layer['bytes'])}B)"
        for layer in made
    ]
    return answer(args, {"layers": made}, lines)


# Configuration, state folder and store


FREE_BYTES_MIN = 256 * 1024 * 1024


def check_config(args: Namespace) -> tuple[Config, Finding]:
    """The configuration as this command line sees it, or the defaults if it cannot be used."""
    try:
        resolved = resolve_config(args)
    except ConfigError as error:
        advice = "Correct it; docs/configuration.md explains the keys. Checked with defaults."
        return Config(), problem("config", str(error), advice)
    if resolved.warning:
        advice = "Tell whoever keeps the project, or set it in your own configuration."
        return resolved.config, note("config", resolved.warning, advice)
    if resolved.retired_notice:
        return resolved.config, note("config", resolved.retired_notice, "Remove them.")
    return resolved.config, ok("config", "every layer can be read")


def check_state(config: Config) -> Iterator[Finding]:
    """The state folder and the store in it. Changes nothing but a file that it removes again."""
    home = config.home
    if not home.exists():
        yield _home_to_be(home)
    elif not home.is_dir():
        yield problem("home", f"{home} is not a folder", ELSEWHERE)
        return
    else:
        yield _permissions(home)
        yield _writable(home)
    yield _space(home)
    yield _file_system(home)
    if home.is_dir():
        yield from _user_key(home)
    yield from store_kind(config.store).findings(config)


def _user_key(home: Path) -> Iterator[Finding]:
    """The key that signs what the user has said; it is made when the first session begins."""
    if not (home / KEY_FILE).exists():
        return
    try:
        load_user(home)
    except (OSError, ForedeckError) as error:
        advice = "Bring it back from a backup. Nothing that you said is lost, only that you did."
        yield problem("user key", str(error), advice)
    else:
        yield ok("user key", f"{home / KEY_FILE}: keep it with your backups")


def _home_to_be(home: Path) -> Finding:
    parent = _existing(home)
    if not os.access(parent, os.W_OK | os.X_OK):
        advice = f"Make {parent} writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} is not there, and {parent} is not writable", advice)
    return ok("home", f"{home} (made at first use)")


def _permissions(home: Path) -> Finding:
    if (owner := foreign_owner(home)) is not None:
        return problem(
            "permissions",
            f"{home} belongs to user {owner}, who can read and change what is in it",
            "Set FOREDECK_HOME to a folder of your own.",
        )
    if looser_than_private(home):
        mode = stat.S_IMODE(home.stat().st_mode)
        return problem(
            "permissions",
            f"other users can get into {home} (mode {mode:04o})",
            f"Run: chmod 700 {home}",
        )
    return ok("permissions", f"{home} is yours alone")


def _writable(home: Path) -> Finding:
    try:
        # Permissions do not say it all: the file system may be read-only, or over its quota.
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"foredeck doctor")
            file.flush()
    except OSError as error:
        advice = "Make it writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} cannot be written: {error.strerror}", advice)
    return ok("home", str(home))


def _space(home: Path) -> Finding:
    free = shutil.disk_usage(_existing(home)).free
    text = f"{free // (1024 * 1024):,} MiB free"
    if free < FREE_BYTES_MIN:
        return problem("disk", text, "Free some space, or set FOREDECK_HOME to another disk.")
    return ok("disk", text)


def _file_system(home: Path) -> Finding:
    if is_network_filesystem(_existing(home)):
        return problem(
            "file system",
            f"{home} is on a network file system, where SQLite cannot lock reliably",
            "Set FOREDECK_HOME to a folder on a local disk.",
        )
    return ok("file system", "local")


def _existing(path: Path) -> Path:
    """The nearest folder on the way up that exists."""
    return path if path.is_dir() or path == path.parent else _existing(path.parent)


# What is stored


SEALS = "sealed reasoning"
_NAMED = 5


def check_stored(config: Config, *, forget_refusals: bool) -> Iterator[Finding]:
    """What is to be said of a store. `forget_refusals`: have all models tried again."""
    kind = store_kind(config.store)
    if not kind.exists(config):
        yield _calibration([])
        return
    if not kind.is_awake(config) and not forget_refusals:
        return  # a node that does not run is not started for this
    with closing(open_store(config, lazy=True)) as store:
        yield _calibration(
            sorted(
                f"{fields['model']}: {fields['chars_per_token']} characters a token "
                f"({len(fields['points'])} calls)"
                for fields in (head.fields for head in store.query("calibration"))
            )
        )
        yield from (_forget_refusals if forget_refusals else _seals)(store)
        yield from _cut_sessions(store)


def _calibration(lines: list[str]) -> Finding:
    """Characters per token, as each model's provider has counted."""
    text = f"no provider has counted yet: sizes are estimated, {CHARS_PER_TOKEN} characters a token"
    return ok("calibration", "\n".join(lines) or text)


def _seals(store: Store) -> Iterator[Finding]:
    if models := _models(store):
        names = ", ".join(models)
        text = f"turns of {names} fold only once they have ended, since folding earlier was refused"
        yield Finding(SEALS, "ok", text, "`foredeck doctor --forget-refusals` tries it again")


def _forget_refusals(store: Store) -> Iterator[Finding]:
    if not (models := _models(store)):
        yield ok(SEALS, "no model is known to have refused a prompt because of it")
        return
    taken: list[Document] = [
        SealsDocument(id=seals_id(name), model=name, binds=False).seal() for name in models
    ]
    store.commit(Batch(taken))
    yield ok(SEALS, f"forgotten, so that it is tried again: {', '.join(models)}")


def _models(store: Store) -> list[str]:
    heads = store.query("seals")
    return sorted(head.view(SealsDocument).model for head in heads if head.fields.get("binds"))


def _cut_sessions(store: Store) -> Iterator[Finding]:
    """Sessions of which a call is stored, and the call before it is not."""
    calls = (CallRecord(head.fields) for head in store.query("call"))
    parents = {call.id: (call.session, call.parent) for call in calls}
    cut = sorted(
        {session for session, parent in parents.values() if parent and parent not in parents}
    )
    if cut:
        names = ", ".join(cut[:_NAMED]) + (f" and {len(cut) - _NAMED} more" if cut[_NAMED:] else "")
        yield note(
            "sessions",
            f"earlier calls are missing of {names}: Pi begins them anew",
            "`foredeck forget SESSION` deletes what is left of one.",
        )
