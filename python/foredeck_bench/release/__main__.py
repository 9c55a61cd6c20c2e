"""`scripts/release`: builds everything twice, and compares."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from foredeck_bench.release.building import (
    BuildFailed,
    Commit,
    VersionsDiffer,
    build,
    build_elsewhere,
    bundle,
    export,
    hashes,
    head_of,
    the_version,
    write_lock,
)
from foredeck_bench.release.materials import (
    licence_page,
    not_described,
    npm_bill,
    python_bill,
)

ROOT = Path(__file__).resolve().parents[3]


def main(argv: list[str] | None = None) -> int:
    """Build into the folder that the command line names; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "dist")
    parser.add_argument("--bundle", metavar="PLATFORM", nargs="*")
    parser.add_argument("--lock", action="store_true")
    args = parser.parse_args(argv)
    out = args.out.absolute()
    try:
        if args.lock:
            write_lock(ROOT)
            return 0
        status = release(out)
        if args.bundle is not None:
            print(bundle(out, args.bundle))
        return status
    except (BuildFailed, VersionsDiffer) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1


def release(out: Path) -> int:
    """Builds the checked-out commit into the folder `out`.

    Returns 1 if a second build differs. Raises `BuildFailed`, `VersionsDiffer`.
    """
    commit = head_of(ROOT)
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        tree.mkdir()
        export(ROOT, commit, tree)
        version = the_version(tree)
        print(f"foredeck {version}, commit {commit.hash[:12]}; what is not committed is left out")
        shutil.rmtree(out, ignore_errors=True)
        first = hashes(build(tree, commit, out))
        _write_materials(tree, commit, version, out)
    return _compare(first, build_elsewhere(ROOT, commit), out)


def _write_materials(tree: Path, commit: Commit, version: str, out: Path) -> None:
    bills = {
        f"foredeck-{version}.cdx.json": python_bill(tree, commit),
        f"pi-foredeck-{version}.cdx.json": npm_bill(tree, commit),
    }
    for name, bill in bills.items():
        (out / name).write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")
    for name in not_described(bills[f"foredeck-{version}.cdx.json"]):
        print(f"not installed here, so the bill only names it: {name}", file=sys.stderr)
    (out / "third-party-licences.txt").write_text(licence_page(bills.values()))


def _compare(first: dict[str, str], second: dict[str, str], out: Path) -> int:
    sums = hashes(sorted(path for path in out.iterdir() if path.is_file()))
    lines = [f"{digest}  {name}" for name, digest in sorted(sums.items())]
    (out / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if differing := sorted(name for name in first if first[name] != second.get(name)):
        print(f"release: a second build differs in {', '.join(differing)}", file=sys.stderr)
        return 1
    print(f"built twice with equal hashes: {', '.join(sorted(first))}\nin {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
