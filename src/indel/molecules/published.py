"""What the paper of MOSES prints for its baselines."""

from __future__ import annotations

SOURCE = (
    "D. Polykovskiy et al., Molecular Sets (MOSES): A Benchmarking Platform for Molecular "
    "Generation Models, Frontiers in Pharmacology 11 (2020): means over its runs"
)
_NAMES = (
    *("valid", "unique@1k", "unique@10k", "FCD/Test", "FCD/TestSF", "SNN/Test", "SNN/TestSF"),
    *("Frag/Test", "Frag/TestSF", "Scaf/Test", "Scaf/TestSF", "IntDiv", "IntDiv2", "Filters"),
    "Novelty",
)
# fmt: off
_ROWS = {
    "Train": (1.0, 1.0, 1.0, 0.008, 0.4755, 0.6419, 0.5859, 1.0, 0.9986, 0.9907, 0.0, 0.8567,
              0.8508, 1.0, 1.0),
    "HMM": (0.076, 0.623, 0.5671, 24.4661, 25.4312, 0.3876, 0.3795, 0.5754, 0.5681, 0.2065, 0.049,
            0.8466, 0.8104, 0.9024, 0.9994),
    "CharRNN": (0.9748, 1.0, 0.9994, 0.0732, 0.5204, 0.6015, 0.5649, 0.9998, 0.9983, 0.9242,
                0.1101, 0.8562, 0.8503, 0.9943, 0.8419),
    "AAE": (0.9368, 1.0, 0.9973, 0.5555, 1.0572, 0.6081, 0.5677, 0.991, 0.9905, 0.9022, 0.0789,
            0.8557, 0.8499, 0.996, 0.7931),
    "VAE": (0.9767, 1.0, 0.9984, 0.099, 0.567, 0.6257, 0.5783, 0.9994, 0.9984, 0.9386, 0.0588,
            0.8558, 0.8498, 0.997, 0.6949),
    "JTN-VAE": (1.0, 1.0, 0.9996, 0.3954, 0.9382, 0.5477, 0.5194, 0.9965, 0.9947, 0.8964, 0.1009,
                0.8551, 0.8493, 0.976, 0.9143),
    "LatentGAN": (0.8966, 1.0, 0.9968, 0.2968, 0.8281, 0.5371, 0.5132, 0.9986, 0.9972, 0.8867,
                  0.1072, 0.8565, 0.8505, 0.9735, 0.9498),
}
# fmt: on
PUBLISHED: dict[str, dict[str, float]] = {
    model: dict(zip(_NAMES, row, strict=True)) for model, row in _ROWS.items()
}
"""Metrics by model; "Train" is the training set itself, whose novelty MOSES gives as 1."""
