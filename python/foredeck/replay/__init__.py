"""Driving the engine with recorded sessions, call by call."""
