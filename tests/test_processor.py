"""What the processor announces is not always what can be used."""

import os
import subprocess
import sys

import pytest

from indel.processor import avoid_hidden_tiles

LIMIT = "ONEDNN_MAX_CPU_ISA"
TILES = "fpu avx512_bf16 amx_bf16 amx_tile"


@pytest.mark.parametrize(
    ("info", "set_before", "limit"),
    [
        ({"flags": TILES, "cpuid level": "28"}, None, "AVX512_CORE_BF16"),
        ({"flags": TILES, "cpuid level": "28"}, "AVX2", "AVX2"),
        ({"flags": TILES, "cpuid level": "29"}, None, None),
        ({"flags": TILES}, None, None),
        ({"flags": "fpu avx2", "cpuid level": "13"}, None, None),
        ({}, None, None),
    ],
)
def test_hidden_tiles_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
    info: dict[str, str],
    set_before: str | None,
    limit: str | None,
) -> None:
    monkeypatch.setenv(LIMIT, "")  # so that the variable is restored whatever happens
    monkeypatch.delenv(LIMIT)
    if set_before is not None:
        monkeypatch.setenv(LIMIT, set_before)
    avoid_hidden_tiles(info)
    assert os.environ.get(LIMIT) == limit


def test_products_of_bfloat16_do_not_end_the_process() -> None:
    program = "; ".join(
        [
            "import indel, torch",
            "a = torch.ones(64, 64, dtype=torch.bfloat16)",
            "print(float((a @ a)[0, 0]))",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"ended by signal {-done.returncode}: {done.stderr}"
    assert float(done.stdout) == 64.0
