"""What each command of `indel` does; `indel.cli` lists them."""
