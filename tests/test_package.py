"""The package that is published: what it says about itself, what is in it, and that it works."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import indel
from indel.pretrained import MODELS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "indel"


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return dict(tomllib.loads(read("pyproject.toml"))["project"])


def workflow(name: str) -> dict[Any, Any]:
    return dict(yaml.safe_load(read(f".github/workflows/{name}.yml")))


# ---------------------------------------------------------------- what it says about itself


def test_the_version_is_in_one_place() -> None:
    assert "version" in project()["dynamic"]
    assert "version" not in project()
    (newest, *_) = re.findall(r"^## \[(\d.*?)\] - \d{4}-\d\d-\d\d$", read("CHANGELOG.md"), re.M)
    assert newest == indel.__version__
    assert f"\n## {indel.__version__}\n" in read("docs/release-notes.md")
    assert read("CHANGELOG.md").index("## [Unreleased]") < read("CHANGELOG.md").index(f"[{newest}]")
    assert "version" not in yaml.safe_load(read("CITATION.cff"))


def test_all_has_every_extra_for_users() -> None:
    extras = project()["optional-dependencies"]
    (everything,) = extras["all"]
    for_users = extras.keys() - {"dev", "docs"}
    assert set(re.findall(r"\w+", everything)) == {"indel", *for_users} - {"all"}
    assert any(each.startswith("indel[all") for each in extras["dev"])
    table = re.findall(r"^\| `(\w+)` \|", read("docs/installing.md"), re.MULTILINE)
    assert set(table) == for_users


def test_links_to_the_repository_name_one_owner() -> None:
    home = project()["urls"]["Homepage"]
    owner = home.removeprefix("https://github.com/").removesuffix("/indel")
    pages = [*ROOT.glob("*.*"), *ROOT.glob(".github/**/*.yml"), *ROOT.glob("docs/*.md")]
    pages += [*ROOT.glob("examples/*"), *ROOT.glob("space/*")]
    found = set()
    for page in filter(Path.is_file, pages):
        text = page.read_text(encoding="utf-8")
        found |= set(re.findall(r"github(?:usercontent)?\.com/(?:github/)?([\w-]+)/indel\b", text))
    assert found == {owner}


def test_the_citation_is_that_of_the_readme() -> None:
    cited = yaml.safe_load(read("CITATION.cff"))["preferred-citation"]
    entry = dict(re.findall(r"^  (\w+) += \{(.*)\},?$", read("README.md"), re.MULTILINE))
    names = [f"{each['family-names']}, {each['given-names']}" for each in cited["authors"]]
    assert " and ".join(names) == entry["author"]
    assert cited["title"] == entry["title"]
    assert str(cited["year"]) == entry["year"]
    assert cited["identifiers"][0]["value"] == entry["note"]


def test_the_workflows_test_every_python_and_name_real_targets() -> None:
    pythons = [
        each.rpartition(" ")[2]
        for each in project()["classifiers"]
        if re.search(r":: 3\.\d+$", each)
    ]
    assert workflow("tests")["jobs"]["test"]["strategy"]["matrix"]["python"] == pythons
    assert project()["requires-python"] == f">={pythons[0]}"
    # The site is a part of its own: its target comes with it.
    targets = {*re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE), "docs"}
    for name in ("tests", "docs", "publish"):
        steps = [step for job in workflow(name)["jobs"].values() for step in job["steps"]]
        made = {step["run"].split()[1] for step in steps if step.get("run", "").startswith("make ")}
        assert made
        assert made <= targets


def test_publishing_needs_no_secret() -> None:
    text = read(".github/workflows/publish.yml")
    assert "secrets." not in text
    publish = workflow("publish")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"


def test_issue_forms_have_what_forms_need() -> None:
    for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= form.keys(), path.name
            assert all(each["id"] and each["attributes"]["label"] for each in form["body"])


# ---------------------------------------------------------------- what is in it


def ours() -> set[str]:
    """The files of the package that belong to it, by git where there is a repository."""
    listed = subprocess.run(
        ["git", "ls-files", "src/indel"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {line.removeprefix("src/") for line in listed.stdout.splitlines()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m build` fills."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == ours()
    assert "indel/py.typed" in names
    for model in MODELS:
        assert f"indel/pretrained/{model}/model.safetensors" in names
    assert {"indel/data/text8_sample/train.txt", "indel/web/static/player.js"} <= names


@pytest.mark.slow
def test_the_source_distribution_builds_the_same_and_holds_nothing_else(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {f"src/{name}" for name in ours()}
    papers = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"}
    assert names == expected | papers | {"PKG-INFO", ".gitignore"}


@pytest.mark.slow
def test_the_description_stands_without_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        about = email.message_from_bytes(archive.read(name))
    assert about["Version"] == indel.__version__
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Description-Content-Type"] == "text/markdown"
    assert len(about.get_all("Project-URL", [])) == len(project()["urls"])
    text = about.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links), links
    for image, path in re.findall(r"!\[[^]]*\]\((https://[^)]*?/(docs/images/[^)]+))\)", text):
        assert f"/v{indel.__version__}/" in image
        assert (ROOT / path).is_file()


# ---------------------------------------------------------------- that it works


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel in it; packages that indel needs are those of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([python, *install], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # After its own; links to source folders that lie there are not followed.
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "borrowed.pth").write_text(f"{here}\n")
    return folder


def said(fresh: Path, *command: str) -> str:
    """What a program of the environment prints, far from the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [fresh / "bin" / command[0], *command[1:]],
        cwd=fresh,
        env={**kept, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_environment_runs_the_package(fresh: Path) -> None:
    place = said(fresh, "python", "-c", "import indel; print(indel.__file__)").strip()
    assert Path(place).is_relative_to(fresh)
    assert said(fresh, "indel", "--version") == f"indel {indel.__version__}\n"
    assert (
        said(fresh, "indel", "repair", "--plain", "teh histroy of rome") == "the history of rome\n"
    )
    numbers = said(fresh, "indel", "sample", "arithmetic", "-n", "1").split()
    assert numbers
    assert all(number.isdecimal() for number in numbers)


@pytest.mark.slow
def test_importing_takes_less_than_two_seconds_beyond_torch(fresh: Path) -> None:
    program = (
        "import time, torch; start = time.process_time(); import indel; "
        "print(time.process_time() - start)"
    )
    assert float(said(fresh, "python", "-c", program)) < 2.0
