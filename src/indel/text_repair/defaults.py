"""How a text is repaired unless something else is asked for."""

MODEL = "text8"
STRENGTH = 3
"""t, the time that a text is taken to be at: how noisy it is believed to be."""
DRAWS = 8
"""Where no words are known. With known words the default is not to draw at all: with the bundled
models draws take most of the time and change next to nothing (docs/experiments.md)."""
AGREEMENT = 0.6
"""A correction is made if it is at least so likely."""
BATCH_SIZE = 64
