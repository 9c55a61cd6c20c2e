"""What builders of foredeck run, from a checkout: measurements, crash rounds, the demo.

None of it is installed, and nothing in foredeck needs it.
"""
