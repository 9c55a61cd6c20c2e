"""The real Pi on a scripted model: scratch folders, processes, configuration."""
