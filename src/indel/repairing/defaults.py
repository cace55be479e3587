"""How a text is repaired unless something else is asked for."""

MODEL = "text8"
STRENGTH = 3
"""t, the time that a text is taken to be at: how noisy it is believed to be."""
DRAWS = 16
AGREEMENT = 0.5
"""A correction is made if at least this share of the draws agree on it."""
BATCH_SIZE = 64
