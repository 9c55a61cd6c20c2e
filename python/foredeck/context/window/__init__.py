"""When a prompt does not fit: putting chat away, and the summary that stays."""
