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
"""Module in foredeck_bench with the `COMMAND`, and a summary."""
