"""The plan of the prompt: one operation for each of the host's messages, and messages of ours."""
