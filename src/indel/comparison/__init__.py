"""Processes side by side: each method is a small module that trains and samples the same way."""
