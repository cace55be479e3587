"""MOSES's metrics of generated molecules, as its paper defines them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.progress import track

from indel.molecules import chemnet
from indel.molecules.chemistry import canonical, molecule, parsed
from indel.molecules.filters import passes_filters
from indel.molecules.fingerprints import internal_diversity, nearest_neighbor_similarity
from indel.molecules.parts import cosine
from indel.molecules.properties import PROPERTIES, wasserstein
from indel.molecules.statistics import Statistics

Metrics = dict[str, float]
"""By the names that MOSES has for them; NaN where there is nothing to say."""


@dataclass(frozen=True)
class Reference:
    """Molecules that generated ones are compared with, and what is known of them."""

    name: str
    smiles: Sequence[str]
    statistics: Statistics


def measure(
    generated: Sequence[str],
    references: Iterable[Reference] = (),
    training: Collection[str] | None = None,
    *,
    with_chemnet: bool = False,
    progress: bool = False,
) -> Metrics:
    """All metrics of a list of strings, which need not be molecules.

    valid is the share that RDKit reads; unique@k the share of different ones among the first k
    valid ones; Novelty the share of different ones that are not in training. All else is of the
    valid ones: SNN, Frag and Scaf against each reference, and the Wasserstein distances of the
    properties to the first one.

    Args:
        generated: Strings, as a model makes them up.
        references: Usually MOSES's test and scaffold test molecules, "Test" and "TestSF".
        training: Canonical SMILES of the molecules that the model was trained on.
        with_chemnet: Whether the Fréchet ChemNet Distance is computed, which takes longest.
        progress: Whether bars are shown.

    Returns:
        A number for each metric.

    >>> metrics = measure(["CCO", "OCC", "c1ccccc1", "c1ccccc"], training=["CCO"])
    >>> metrics["valid"], round(metrics["unique@1k"], 3), metrics["Novelty"]
    (0.75, 0.667, 0.5)

    Reference: Polykovskiy et al. 2020, Sec. 4
    """
    if not generated:
        raise ValueError("there must be at least one generated molecule, got none")
    read = (canonical(found) for text in generated if (found := parsed(text)) is not None)
    smiles = list(read)
    metrics: Metrics = {"valid": len(smiles) / len(generated)}
    for name, count in (("unique@1k", 1_000), ("unique@10k", 10_000)):
        metrics[name] = _share(len(set(smiles[:count])), len(smiles[:count]))
    statistics = Statistics.of(smiles, progress=progress)
    references = list(references)
    if with_chemnet:
        own = chemnet.activations(smiles)
        for reference in references:
            other = chemnet.activations(reference.smiles)
            metrics[f"FCD/{reference.name}"] = chemnet.frechet_distance(own, other)
    some = len(smiles) > 0
    for reference in references:
        known = reference.statistics
        metrics[f"SNN/{reference.name}"] = (
            nearest_neighbor_similarity(statistics.bits, known.bits) if some else math.nan
        )
        metrics[f"Frag/{reference.name}"] = cosine(statistics.fragments, known.fragments)
        metrics[f"Scaf/{reference.name}"] = cosine(statistics.scaffolds, known.scaffolds)
    metrics["IntDiv"] = internal_diversity(statistics.bits, 1) if some else math.nan
    metrics["IntDiv2"] = internal_diversity(statistics.bits, 2) if some else math.nan
    watched = track(smiles, "filters", disable=not progress, transient=True)
    metrics["Filters"] = _share(
        sum(passes_filters(molecule(each)) for each in watched), len(smiles)
    )
    if training is not None:
        different = set(smiles)
        metrics["Novelty"] = _share(len(different.difference(training)), len(different))
    for reference in references[:1]:
        for name in PROPERTIES:
            own_values, others = statistics.properties[name], reference.statistics.properties[name]
            metrics[name] = wasserstein(own_values, others) if some else math.nan
    return {name: float(np.float64(value)) for name, value in metrics.items()}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
