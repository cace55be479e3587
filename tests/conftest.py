"""Shapes written in types are checked while tests run."""

from jaxtyping import install_import_hook

# Before anything imports indel, so that every function of it is checked.
install_import_hook("indel", "type_checker.checker")
