"""The page of indel on a Hugging Face Space; options of `indel serve` may follow."""

import os
import sys

from indel.cli import run

# The proxy of Spaces lies in a private network; it says for whom it asks.
os.environ.setdefault("FORWARDED_ALLOW_IPS", "127.0.0.1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16")

# Where Gradio knows of a Space, its page asks other hosts for fonts and a header; ours asks nobody.
for name in ("SYSTEM", "SPACE_ID"):
    os.environ.pop(name, None)

arguments = ["--host", "0.0.0.0", "--port", os.environ.get("GRADIO_SERVER_PORT", "7860")]
arguments += ["--allow-host", os.environ.get("SPACE_HOST", "localhost")]
arguments += ["--allow-frame", "https://huggingface.co"]

sys.exit(run(["serve", *arguments, *sys.argv[1:]]))
