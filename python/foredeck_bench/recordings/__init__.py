"""Sessions of the real Pi on the sample repository, recorded for the tests."""
