"""What a chemist does with a model of SMILES: measure, vary, steer, mend, draw. RDKit inside.

>>> import indel.molecules
>>> indel.molecules.valid(["c1ccccc1", "c1ccccc"])
[1.0, 0.0]
"""

from indel.molecules.rewards import qed, synthesizability, valid

__all__ = ["qed", "synthesizability", "valid"]
