"""The functions of `import indel`: they take a seed and texts, and ask the model for the rest."""
