"""From what was said in a turn to facts that are worth remembering. Pure: no store, no model.

lines     the model's answer, read strictly; facts about the agent or its memory
question  what the model is asked, its material between guards
origin    whose words a fact is made of
likeness  the same again, contradictions, what is nearest
judging   what becomes of each line
"""
