"""How a text is repaired unless something else is asked for."""

MODEL = "text8"
STRENGTH = 3
"""t, the time that a text is taken to be at: how noisy it is believed to be."""
DRAWS = 8
"""On the page. Otherwise nothing is drawn unless it is asked for: one call of the network gives the
odds of all edits (`text_repair.proposals`), and draws take many."""
AGREEMENT = 0.6
"""A correction is made if it is at least so likely."""
BATCH_SIZE = 64
