"""Configuration: the model, where values come from, and the state folder."""

from foredeck.config.load import (
    Resolved,
    ValueOrigin,
    ensure_home,
    foreign_owner,
    load_config,
    looser_than_private,
    project_config_file,
    user_config_file,
    user_rules_file,
)
from foredeck.config.model import Config, RebaseSection, SeedWindowSection
from foredeck.config.sections import LimitsSection, MountSection, SourcesSection, SqliteSection
from foredeck.home import default_home

__all__ = [
    "Config",
    "LimitsSection",
    "MountSection",
    "RebaseSection",
    "Resolved",
    "SeedWindowSection",
    "SourcesSection",
    "SqliteSection",
    "ValueOrigin",
    "default_home",
    "ensure_home",
    "foreign_owner",
    "load_config",
    "looser_than_private",
    "project_config_file",
    "user_config_file",
    "user_rules_file",
]
