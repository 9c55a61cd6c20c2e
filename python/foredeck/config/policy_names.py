"""Which policies there are: those that come with foredeck, and those that are installed beside it.

A package brings a policy by an entry point of the group `foredeck.policies`. Looking for entry
points reads the metadata of every installed package, so it is done for no name that is built in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = ("adaptive", "lean", "careful", "seed-window", "last-n", "keep-all")

ENTRY_POINTS = "foredeck.policies"
"""The group under which packages name their policies in `pyproject.toml`."""


def installed_policies() -> dict[str, EntryPoint]:
    """The policies of other packages, by name. A built-in name cannot be taken."""
    # Only for a policy that is not built in.
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINTS)
    return {entry.name: entry for entry in found if entry.name not in BUILT_IN}


def check_policy(name: str) -> str:
    """The name, if there is such a policy. Raises `ValueError` that lists all there are."""
    if name in BUILT_IN:
        return name
    installed = installed_policies()
    if name not in installed:
        known = ", ".join([*BUILT_IN, *sorted(installed)])
        raise ValueError(f"there is no policy {name!r}; the policies are {known}")
    return name
