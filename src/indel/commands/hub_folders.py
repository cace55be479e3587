"""A model as a repository on the Hugging Face Hub: the folder that goes there, and its upload."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, HfApi, ModelCard
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from indel.atomic_files import write_output
from indel.commands.model_cards import CONFIG, CURVE, plain_card, usage
from indel.loading import load, model_folder
from indel.model.saving import CHECKSUMS, FILES, FOR_REPAIR, write_checksums

CARD = "README.md"


def check_repository(repository: str) -> None:
    """Refuse a name that the Hub would refuse, without asking it."""
    try:
        validate_repo_id(repository)
    except HFValidationError:
        pass
    else:
        if repository.count("/") == 1:
            return
    raise ValueError(
        f"the repository must be OWNER/NAME in letters, digits, '-', '_' and '.', "
        f"such as someone/proteins, got {repository!r}"
    )


def find_token() -> str:
    """The token of the user, as Hugging Face's own tools find it."""
    token = huggingface_hub.get_token()
    if token is None:
        raise ValueError(
            "there is no token of the Hugging Face Hub: log in with `hf auth login`, or set "
            "HF_TOKEN to a token that may write"
        )
    return token


def write_hub_folder(model: str, repository: str, folder: Path, *, title: str | None) -> Path:
    """Write what is uploaded: the model, what repair reads, and the card.

    The card that lies beside the model is kept, and gets a section on how to use it; without one,
    it says what the model is and that nothing was measured.
    """
    source = model_folder(model)
    denoiser = load(source)  # whole, and its checksums are right
    folder.mkdir(parents=True)
    for name in (*FILES, CHECKSUMS, *FOR_REPAIR, CONFIG, CURVE):
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if not (folder / CHECKSUMS).exists():
        write_checksums(folder)
    if title is None and (source / CARD).is_file():
        text = (source / CARD).read_text(encoding="utf-8")
    else:
        text = plain_card(title or repository.partition("/")[2], denoiser)
    write_output(folder / CARD, _finished_card(text, source / CARD, repository).encode())
    return folder


def _finished_card(text: str, path: Path, repository: str) -> str:
    try:
        card = ModelCard(text)
    except Exception as error:  # the YAML library has its own
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} should begin with a header in YAML: {reason}") from error
    card.data["library_name"] = "indel"
    if "\n## Use\n" in text:
        return str(card)
    return f"{str(card).rstrip()}\n\n{usage(repository)}"


def upload(folder: Path, repository: str, *, token: str, private: bool, message: str) -> str:
    """Upload a folder in one commit and return its address; what goes wrong is one line."""
    api = HfApi(token=token)
    files = [
        CommitOperationAdd(path_in_repo=path.name, path_or_fileobj=path)
        for path in sorted(folder.iterdir())
    ]
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        commit: Any = api.create_commit(repository, operations=files, commit_message=message)
    except Exception as error:  # of the Hub, of its connection, or of a file on the way
        raise ValueError(f"nothing was uploaded to {repository}: {_reason(error)}") from error
    return str(commit.repo_url)


def _reason(error: Exception) -> str:
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        match error.response.status_code:
            case 401:
                return "the Hub does not know the token (`hf auth login` sets another one)"
            case 403:
                return "the token may not write there: it must be one that can, of that owner"
    said = " ".join(f"{error} {error.__cause__ or ''}".split())[:200]
    return f"the Hub cannot be reached, or does not answer as expected ({said})"
