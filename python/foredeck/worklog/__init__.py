"""What was done, and in which form a command worked: recognised from tool results, without a
model."""
