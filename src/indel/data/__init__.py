"""Where x_0 comes from: endless streams of batches that are pure functions of seed and number."""

from indel.data.arithmetic import ArithmeticData
from indel.data.chunks import ChunkStream
from indel.data.errors import DataError, DataUnavailable
from indel.data.huggingface import HuggingFaceText
from indel.data.length_sorting import LengthSorted
from indel.data.molecules import MosesData, MosesSample
from indel.data.registry import DATA_NAMES, open_data, open_vocabulary
from indel.data.sequences import Sequences
from indel.data.streams import SPLITS, BatchStream, Split
from indel.data.text8 import Text8Data, Text8Sample
from indel.data.text_files import TextFiles

__all__ = [
    "DATA_NAMES",
    "SPLITS",
    "ArithmeticData",
    "BatchStream",
    "ChunkStream",
    "DataError",
    "DataUnavailable",
    "HuggingFaceText",
    "LengthSorted",
    "MosesData",
    "MosesSample",
    "Sequences",
    "Split",
    "Text8Data",
    "Text8Sample",
    "TextFiles",
    "open_data",
    "open_vocabulary",
]
