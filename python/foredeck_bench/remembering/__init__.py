"""Memory under bad conditions, and what recorded sessions leave in it.

worker     a process that reads out, accepts or imports, and says at each commit where it is
crash      kills at every commit, and what the store holds afterwards
extractor  answers like a model's, from fixed rules
recorded   recorded sessions, read out with that extractor
"""
