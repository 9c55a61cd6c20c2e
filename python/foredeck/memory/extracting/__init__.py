"""From what was said in a turn to facts that are worth remembering. Pure: no store, no model.

words          words of short texts, so that two can be compared
selfreference  facts about the agent or its memory
lines          the model's answer, read strictly
question       what the model is asked, its material between guards
origin         whose words a fact is made of
lasting        whether a sentence says that it holds for longer
likeness       the same again, contradictions, what is nearest
judging        what becomes of each line
"""
