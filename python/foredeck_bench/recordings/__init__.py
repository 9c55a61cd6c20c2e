"""Sessions of the real Pi on the sample repository, recorded for the tests.

sessions    what is asked and answered in each
__main__    one file for each, with nothing of the machine in it
tools.js    the extension that they share: a tool to be loaded, a command that goes back
tickets.py  an MCP server with one tool
"""
