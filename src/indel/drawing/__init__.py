"""Figures, drawn from the objects that they show."""
