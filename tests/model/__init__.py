"""Tests of documents, hashes and stored messages."""
