"""Reads stored objects for people and programs."""
