"""Tests of the store: one contract for all adapters, and what each adapter adds."""
