"""The commands that `foredeck bench` offers in a checkout."""

BENCH_COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("measure.run", "measure what foredeck costs on this machine"),
    "bench crash": (
        "crash.table",
        "kill engine, Pi, XTDB's node and other processes at every place, and count what is lost",
    ),
    "bench eval": (
        "evaluating.run",
        "compare plain Pi and foredeck on the shipped tasks, with a scripted model",
    ),
    "bench recall": (
        "search.recall",
        "ask long conversations questions whose answering messages are known",
    ),
    "bench search": (
        "search.command",
        "measure whether searching finds what is looked for, how fast, at what cost",
    ),
}
"""By name: the module in foredeck_bench that has it as `COMMAND`, and a one-line summary."""
