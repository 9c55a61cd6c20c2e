"""`foredeck bench crash`: one table of what is killed, when, and what must hold afterwards.

table         the rows, and the command that runs them
acts          acts in processes of their own, killed at every place that they come to, or raced
engine_rounds a host without Pi, on engines that are killed
pi_rounds     the real Pi, which is killed, or its engine, or both
storm         files that change while the engine that follows them is stopped or gone
"""
