"""Benchmarks of search: quality of ranking, rate and size at scale, killed writers."""
