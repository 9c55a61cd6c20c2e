"""The demo: a scripted or real model works on a sample repository through Pi."""
