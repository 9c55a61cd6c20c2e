"""What builders of foredeck run, from a checkout: measurements, crash and storm rounds, the demo.

No part of it is installed with foredeck, and nothing in foredeck needs it: `foredeck bench` offers
its commands only where this package can be imported.
"""
