"""The commands that `foredeck bench` offers in a checkout."""

BENCH_COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("measure.run", "measure what foredeck costs on this machine"),
    "bench crash": (
        "crash.run",
        "kill engine, Pi or the XTDB node again and again, and count what is lost",
    ),
    "bench eval": (
        "evaluating.run",
        "compare plain Pi and foredeck on the shipped tasks, with a scripted model",
    ),
    "bench observations": (
        "observing.command",
        "kill whoever observes a session, let two race for it, and count",
    ),
    "bench memory": (
        "remembering.crash",
        "kill whoever reads out, accepts or imports memory, and count what is lost",
    ),
    "bench recall": (
        "search.recall",
        "ask long conversations questions whose answering messages are known",
    ),
    "bench rewind": ("rewind", "kill rewindings half-way, and see whether the files come back"),
    "bench search": (
        "search.command",
        "measure whether searching finds what is looked for, how fast, at what cost",
    ),
    "bench storm": (
        "storm",
        "change many files under a running engine, and count what it gets wrong",
    ),
    "bench tasks": (
        "task_race",
        "let agents race for tasks, and time what a large project asks for",
    ),
}
"""By name: the module in foredeck_bench that has it as `COMMAND`, and a one-line summary."""
