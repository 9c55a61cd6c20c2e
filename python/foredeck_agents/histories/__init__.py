"""Histories of coding agents, read into the store as sessions like any other."""
