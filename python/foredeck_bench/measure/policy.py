"""How long the policy takes at a call, and a digest of a long output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from foredeck.context.calls import deciding
from foredeck.context.digests import DigestSize, digest
from foredeck_bench.figures import Figure, timing

DIGEST_CHARS = 50_000
DIGESTS = 40


class TimedPolicy:
    """Measures how long policies take, finding the uses included, until it is closed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ask: Callable[..., Any] = vars(deciding)["run_policy"]
        vars(deciding)["run_policy"] = self._timed

    def close(self) -> None:
        """Stop measuring."""
        vars(deciding)["run_policy"] = self._ask

    def _timed(self, *args: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return self._ask(*args, **options)
        finally:
            self.seconds += time.perf_counter() - began


def digest_figures() -> Iterator[Figure]:
    """The digest of one output of 50 KB, by its kind."""
    for kind, tool, line in (
        ("file", "read", "    def handle_{0}(self, value_{0}: int) -> Result:  # see {1}\n"),
        ("search", "grep", "src/part_{1}/module_{1}.ts:{0}: const value = parseIndex({0});\n"),
        ("log", "bash", "PASS tests/unit/test_{1}.py::test_case_{0} in 0.{1}s\n"),
    ):
        text = "".join(line.format(n, n % 97) for n in range(2000))[:DIGEST_CHARS]
        taken = []
        for _ in range(DIGESTS):
            began = time.perf_counter()
            digest(tool, {"path": "a.py"}, text, held=frozenset(), size=DigestSize())
            taken.append(time.perf_counter() - began)
        yield timing(f"digest_{kind}", f"the digest of a {kind} of 50 KB", taken, 2)
