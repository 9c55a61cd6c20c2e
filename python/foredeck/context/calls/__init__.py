"""The steps of one call of the model; `assembler.py` has them in their order."""
