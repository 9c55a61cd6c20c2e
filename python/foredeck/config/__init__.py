"""Configuration: the model, where its values come from, and the state folder.

resolved = load_config(project=Path.cwd(), trusted=True)
resolved.config.seed_window.turns      # 3
resolved.origins["seed_window.turns"]  # Origin(kind="default", place="")
"""

from foredeck.config.folders import (
    default_home,
    ensure_home,
    looser_than_private,
    project_config_file,
    user_config_file,
)
from foredeck.config.load import Origin, Resolved, load_config
from foredeck.config.model import Config
from foredeck.config.outside import LimitsSection, Mount, SourcesSection, SqliteSection
from foredeck.config.prompt import RebaseSection, SeedWindowSection

__all__ = [
    "Config",
    "LimitsSection",
    "Mount",
    "Origin",
    "RebaseSection",
    "Resolved",
    "SeedWindowSection",
    "SourcesSection",
    "SqliteSection",
    "default_home",
    "ensure_home",
    "load_config",
    "looser_than_private",
    "project_config_file",
    "user_config_file",
]
