"""A vault of notes made by a script, and how long foredeck takes over it.

The notes are as awkward as people's: names with spaces, marks and other scripts, titles that
several share, embeds, cycles, links to notes that are not there and to names that are there twice.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.index_command import index_paths
from foredeck.cli.output import Progress, print_json
from foredeck.cli.registry import Command
from foredeck.config import Config, load_config
from foredeck.derived.follower import Follower
from foredeck.model.figures import short_count
from foredeck.notes.graph import Graph
from foredeck.notes.layer import LAYER
from foredeck.notes.markdown import parse_note
from foredeck.sources.disk import open_source
from foredeck.sources.filesystem import open_filesystems
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch, LocalStore
from foredeck.xtdb.node import private_node
from foredeck.xtdb.runtime import find_runtime

SEED = 12
LINKS = 6
SAMPLES = 100
WORDS = (
    *("tide", "ebb", "flow", "harbour", "keel", "rudder", "compass", "lantern", "rope"),
    *("anchor", "chart", "north", "gale"),
)
AWKWARD = ("{}", "{} & co", "É {}", "潮 {}", "{}'s log", "{} (2026)", "no. {}", "a.b {}", "🌊 {}")
LIMITS = {"indexed_s": 30.0, "neighbours_p95_ms": 20.0, "changed_p95_ms": 50.0}
"""What is asked of a vault of 10,000 notes on SQLite."""

Advance = Callable[[str], None]


def measure_vault(
    notes: int, store: str = "sqlite", advance: Advance = lambda _note: None
) -> dict[str, Any]:
    """Make a vault, take it in, ask for neighbours and change notes. Times in s and ms."""
    with tempfile.TemporaryDirectory(prefix="foredeck-vault-") as folder:
        home, vault = Path(folder) / "home", Path(folder) / "vault"
        paths = write_vault(vault, notes)
        home.mkdir(mode=0o700)
        with _configured(store, home) as config, closing(open_store(config, lazy=True)) as opened:
            with Follower(opened, LAYER, home) as follower:
                found = _measure(config, opened, follower, vault, paths, advance)
            found["layer_bytes"] = follower.path.stat().st_size
    found |= {"store": store, "long_note_s": _long_note_seconds()}
    found["ok"] = all(found[name] <= limit for name, limit in LIMITS.items())
    return found


@contextmanager
def _configured(store: str, home: Path) -> Iterator[Config]:
    """A configuration with a store of its own; for XTDB with a node in memory behind it."""
    if store == "sqlite":
        yield load_config(flags=[f"home={home}"]).config
        return
    with private_node(home.parent / "node", find_runtime(load_config().config.home)) as node:
        running, token_file = node.running(), home / "token"
        assert running is not None
        token_file.write_text(node.token() or "", encoding="utf-8")
        token_file.chmod(0o600)
        flags = [f"home={home}", "store=xtdb", f"xtdb.url={running.url}"]
        yield load_config(flags=[*flags, f"xtdb.token_file={token_file}"]).config


def write_vault(folder: Path, notes: int) -> list[Path]:
    """Write that many notes, always the same ones, and return their paths."""
    chance = random.Random(SEED)
    names = [_name(chance, number) for number in range(notes)]
    paths = [folder / f"d{number % 40}" / f"{name}.md" for number, name in enumerate(names)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_note(chance, number, names), encoding="utf-8")
    return paths


def _name(chance: random.Random, number: int) -> str:
    plain = f"{chance.choice(WORDS)} {number}"
    # One in fifty has a name that others have, too, in other folders.
    return chance.choice(WORDS) if number % 50 == 0 else chance.choice(AWKWARD).format(plain)


def _note(chance: random.Random, number: int, names: list[str]) -> str:
    head = f"---\nkind: note\ntags: [{chance.choice(WORDS)}/{chance.choice(WORDS)}]\n"
    head += f'parent: "[[{names[number // 10]}]]"\n---\n'
    title = f"# {'Log' if number % 100 == 0 else names[number]}\n\n"
    body = "".join(f"{_sentence(chance)} {_link(chance, number, names)}.\n\n" for _ in range(LINKS))
    return f"{head}{title}{body}- [ ] look again\n\n```\n[[not a link]]\n```\n"


def _sentence(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(12))


def _link(chance: random.Random, number: int, names: list[str]) -> str:
    near = names[(number + chance.randrange(-20, 21)) % len(names)]
    kind = chance.randrange(20)
    if kind == 0:
        return f"[[not written yet {number}]]"
    if kind == 1:
        return "[[Log]]"
    if kind == 2:
        return f"![[{near}#Part|as shown]]"
    if kind == 3:
        return f"`[[{near}]]` #{chance.choice(WORDS)}"
    return f"[[{near}]]"


def _measure(
    config: Config,
    store: LocalStore,
    follower: Follower,
    vault: Path,
    paths: list[Path],
    advance: Advance,
) -> dict[str, Any]:
    take_in = partial(index_paths, config, store, [str(vault)], len(paths), advance)
    stored, parsed = _timed(take_in), _timed(follower.catch_up)
    found: dict[str, Any] = {
        "notes": len(paths),
        "stored_s": stored[0] / 1000,
        "indexed_s": (stored[0] + parsed[0]) / 1000,
        "indexed_cpu_s": (stored[1] + parsed[1]) / 1000,
        "again_s": _timed(take_in)[0] / 1000,
    }
    graph = Graph(follower.db)
    found |= _counts(graph)
    chance = random.Random(SEED)
    nodes = [node.id for node, _ in graph.markdown()]
    asked = chance.sample(nodes, min(SAMPLES, len(nodes)))
    sizes: list[int] = []
    times = [_timed(partial(_ask, graph, id, sizes)) for id in asked]
    found |= _spread("neighbours", times) | {"neighbours_nodes": statistics.median(sizes)}
    changed = [
        _timed(partial(_change, config, store, follower, path))
        for path in chance.sample(paths, min(SAMPLES // 2, len(paths)))
    ]
    return found | _spread("changed", changed)


def _counts(graph: Graph) -> dict[str, Any]:
    began = time.perf_counter()
    loose = list(graph.unresolved())
    orphans = graph.orphans()
    return {
        "broken": sum(1 for item in loose if not item.candidates),
        "ambiguous": sum(1 for item in loose if item.candidates),
        "orphans": len(orphans),
        "whole_graph_s": time.perf_counter() - began,
    }


def _ask(graph: Graph, id: str, sizes: list[int]) -> None:
    sizes.append(len(graph.neighbours(id, 2).nodes))


def _change(config: Config, store: LocalStore, follower: Follower, path: Path) -> None:
    """One note is edited, and the graph knows."""
    path.write_text(f"{path.read_text(encoding='utf-8')}\n[[new link]]\n", encoding="utf-8")
    source = open_source(config, store, open_filesystems(config, str(path.parent)))
    document = source.sight(str(path), "read").document
    assert document is not None
    store.commit(Batch(puts=[document]))
    follower.catch_up()


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds that something takes, and those in which this process was at work."""
    began, busy = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - began) * 1000, (time.process_time() - busy) * 1000


def _spread(name: str, times: list[tuple[float, float]]) -> dict[str, float]:
    ordered = sorted(wall for wall, _ in times)
    return {
        f"{name}_cpu_ms": statistics.median(busy for _, busy in times),
        f"{name}_ms": statistics.median(ordered),
        f"{name}_p95_ms": ordered[int(len(ordered) * 0.95) - 1],
        f"{name}_max_ms": ordered[-1],
    }


def _long_note_seconds() -> float:
    """One note of 5 MB with 10,000 links."""
    text = ("words " * 80 + "[[Note one#h|label]] #tag\n\n") * 10_000
    began = time.perf_counter()
    assert len(parse_note(text).references) == 10_000
    return time.perf_counter() - began


# The command


def _run(args: Namespace) -> int:
    with Progress("taking in") as progress:
        found = measure_vault(
            args.notes, args.store, lambda path: progress.advance(note=path.rpartition("/")[2])
        )
    if args.json:
        print_json(found)
    else:
        _print(found)
    return 0 if found["ok"] else 1


def _print(found: dict[str, Any]) -> None:
    print(
        f"{found['notes']:,} notes on {found['store']}: stored in {found['stored_s']:.1f} s, in "
        f"the graph after {found['indexed_s']:.1f} s (busy {found['indexed_cpu_s']:.1f} s); "
        f"once more, unchanged, in {found['again_s']:.1f} s"
    )
    around = f"neighbours at depth 2 ({found['neighbours_nodes']:.0f} objects)"
    print(f"{around}: {_times(found, 'neighbours')}")
    print(f"one changed note, from the disk to the graph: {_times(found, 'changed')}")
    print(
        f"{found['broken']:,} broken references, {found['ambiguous']:,} ambiguous, "
        f"{found['orphans']:,} orphans, found in {found['whole_graph_s']:.1f} s; the graph takes "
        f"{short_count(found['layer_bytes'])}B"
    )
    print(f"a note of 5 MB with 10,000 links is read in {found['long_note_s']:.1f} s")
    for name, limit in LIMITS.items():
        if found[name] > limit:
            print(f"over the limit: {name} {found[name]:.1f}, {limit:.0f} is asked")


def _times(found: dict[str, Any], name: str) -> str:
    return (
        f"median {found[f'{name}_ms']:.1f} ms (busy {found[f'{name}_cpu_ms']:.1f} ms), p95 "
        f"{found[f'{name}_p95_ms']:.1f} ms, most {found[f'{name}_max_ms']:.1f} ms"
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--notes", metavar="N", type=positive, default=10_000, help="notes (default: %(default)s)"
    )
    parser.add_argument(
        "--store",
        choices=("sqlite", "xtdb"),
        default="sqlite",
        help="which store; for xtdb a node in memory is started, of the one that is installed "
        "(default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make a vault of notes with awkward names, cycles, embeds, broken and ambiguous links;\n"
        "take it in, ask for neighbours at depth 2, and change single notes. Exit code 1 where\n"
        "that takes longer than 30 s, 20 ms or 50 ms (the last two at the 95th percentile).\n"
        "`busy` is processor time: what an idle machine would need."
    ),
    example="foredeck bench notes --json",
    configure=_configure,
    run=_run,
)
