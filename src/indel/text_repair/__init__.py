"""Repairing badly typed text with a denoiser that was trained on good text alone."""
