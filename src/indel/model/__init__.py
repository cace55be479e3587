"""The reverse process p_θ: a network that guesses the edits, and what follows from its guess."""

from indel.model.backbones import Backbone, BackboneConfig, register_backbone
from indel.model.config import DenoiserConfig
from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.model.huggingface import HuggingFaceConfig, HuggingFaceEncoder
from indel.model.length import LengthTable
from indel.model.presets import PRESETS, Preset, preset_config
from indel.model.rotary import RotaryConfig, RotaryTransformer
from indel.model.t5 import load_t5_encoder
from indel.model.transformer import Transformer, TransformerConfig

__all__ = [
    "PRESETS",
    "Backbone",
    "BackboneConfig",
    "Denoiser",
    "DenoiserConfig",
    "DenoiserOutput",
    "HuggingFaceConfig",
    "HuggingFaceEncoder",
    "LengthTable",
    "Preset",
    "RotaryConfig",
    "RotaryTransformer",
    "Transformer",
    "TransformerConfig",
    "load_t5_encoder",
    "preset_config",
    "register_backbone",
]
