# Each target installs into .venv what it needs, once. `make PYTHON=python3.12 test` picks another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
# Two processes; neighbors in a file stay together, and whoever is done first takes from the other.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

.PHONY: demo test test-all lint types bench screenshots site-screenshots figures notebooks docs gallery package gpu-check clean

demo: $(INSTALLED)
	$(BIN)/indel repair --compare "thisn sentsnetne wasstype vssry babdly"
	$(BIN)/indel repair --diff "The Goverment says tecnologies from www.example.org are importent, becouse peple like them for 3 resons."
	$(BIN)/indel sample text8 --count 3

test: $(DEVELOPED)
	$(PYTEST) -m "not slow"

test-all: $(DEVELOPED)
	$(PYTEST)

lint: $(DEVELOPED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEVELOPED)
	$(BIN)/mypy

bench: $(DEVELOPED)
	$(BIN)/python benchmarks/process.py
	$(BIN)/python benchmarks/objective.py
	$(BIN)/python benchmarks/count_prior.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/edit_choices.py
	$(BIN)/python benchmarks/page.py

screenshots: $(DEVELOPED)
	$(BIN)/python tests/web/screenshots.py

# To be looked at, not kept: build/site-screenshots.
site-screenshots: $(DEVELOPED)
	$(BIN)/python -m mkdocs build --strict
	$(BIN)/python tests/docs/screenshots.py

figures: $(DEVELOPED)
	$(BIN)/indel reproduce figure2 figure3 figure5 figure6 figure7 --scale tiny --out results
	$(BIN)/indel reproduce figure1 figure4 --scale laptop --out results
	mkdir -p docs/images
	cp results/tiny/figure[23567].png results/laptop/figure[14].png docs/images/

notebooks: $(DEVELOPED)
	$(BIN)/python examples/run_notebooks.py

package: $(DEVELOPED)
	$(BIN)/python -m pytest -m slow tests/test_package.py
	rm -rf dist
	$(BIN)/python -m build

gpu-check: $(DEVELOPED)
	$(BIN)/python benchmarks/gpu_check.py

# The examples first: a site whose snippets do not run is not built.
docs: $(DEVELOPED)
	$(PYTEST) -m "not slow" tests/test_docs.py tests/test_docstrings.py tests/docs
	$(BIN)/python -m mkdocs build --strict

gallery: $(DEVELOPED)
	$(BIN)/python docs/tools/gallery.py
	$(BIN)/python docs/tools/shown_outputs.py --write

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "indel needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# constraints.txt first: it names the torch build to take, before anything asks for another.
$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(DEVELOPED): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@ $(INSTALLED)
