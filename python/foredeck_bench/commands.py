"""The commands that `foredeck bench` offers in a checkout."""

BENCH_COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("measure.run", "measure what foredeck costs on this machine"),
    "bench crash": (
        "crash.table",
        "kill engine, Pi, XTDB's node and other processes at every place, and count what is lost",
    ),
    "bench recall": (
        "search.recall",
        "ask long conversations questions whose answers are known, and time the index",
    ),
}
"""By name: the module in foredeck_bench that has it as `COMMAND`, and a one-line summary."""
