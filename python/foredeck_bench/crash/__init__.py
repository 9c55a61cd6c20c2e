"""Killing engine, Pi, both, or the XTDB node, at chosen and at random points, and what is left."""
