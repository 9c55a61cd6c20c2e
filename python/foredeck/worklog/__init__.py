"""Finished work, recognised from tool results without a model."""
