"""What builders of foredeck run, from a checkout: measurements, crash rounds, the demo.

None of it is installed, and nothing in foredeck needs it.
"""

BENCH_COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("measure_command", "measure what foredeck costs on this machine"),
    "bench crash": (
        "crash.table",
        "kill engine, Pi, XTDB's node and other processes at every place, and count what is lost",
    ),
    "bench recall": (
        "recall",
        "ask long conversations questions whose answers are known, and time the index",
    ),
}
"""Module in foredeck_bench with the `COMMAND`, and a summary."""
