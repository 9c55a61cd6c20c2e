"""Benchmarks of search: ranking, rate and size, killed writers."""
