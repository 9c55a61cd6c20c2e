"""Kills the engine, Pi, both, or the XTDB node at chosen and at random points, and checks what is
left.
"""
