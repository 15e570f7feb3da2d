# What people and CI run; everything lives in .venv and node_modules below this folder.
PYTHON ?= python3
# A build for the CPU is enough for everything here; bring another by TORCH=... or by TORCH_INDEX=..., an index from which
# torch and what it needs are installed. A second index for pip (PIP_EXTRA_INDEX_URL) could give any other package as well.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
BIN := $(CURDIR)/.venv/bin
# What is imported is compiled then, two thirds of what is installed never is: compiling all takes as long as the rest.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# Python's own pip is older, and computes twice as long for the same packages; it is kept where the index has no newer one.
NEWER_PIP := $(PIP) "pip>=26" || true
# With the link that jupyter-builder develop makes, an earlier install left its own file in the build, which the next one then has twice.
INSTALL := rm -f jupyter_dist/labextension/install.json && $(PIP) --constraint .venv/constraints.txt
# Builds a grammar at each import of jupyter_server, for a second or more; without it jsonschema does not check IRIs.
WITHOUT_IRIS := $(BIN)/pip uninstall --quiet --yes rfc3987-syntax
export PATH := $(BIN):$(PATH)
# Where this is set, each of the hundreds of processes of a test run compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: figures demo demo-nodes lab test test-first test-first-again test-python test-ray test-versions test-typescript test-browser test-browser-1 test-browser-2 \
	test-python-again test-ray-again test-versions-again test-typescript-again test-browser-again test-browser-1-again test-browser-2-again \
	test-beside test-beside-again test-beside-beside test-beside-nbmodel test-package test-package-again release-dry-run matrix generate translations lint docs third-party bench gpu gpu-wheels pictures clean setup extras browser slurm

demo: .venv/ready  ## Run examples/ddp_digits.ipynb on 2 ranks through the public API
	$(BIN)/python examples/run_notebook.py examples/ddp_digits.ipynb --num-ranks 2

demo-nodes: .venv/ready  ## Train over two nodes (examples/two_nodes.ipynb), both on this machine, and print the notebook
	$(BIN)/jupyter nbconvert --to markdown --execute --stdout examples/two_nodes.ipynb

lab: .venv/frontend  ## Open the same notebook in JupyterLab
	$(BIN)/jupyter lab examples/ddp_digits.ipynb

# What is short and what has changed, then two at a time, the first beside all others: 25 minutes on 2 cores. tests/README.md says how long each part takes.
TESTS := test-python+test-ray+test-versions+test-typescript+test-browser
# A last target: CI runs the linters there, when the tests of Python have the cores for themselves and mostly wait.
WITH ?=

test: .venv/frontend browser slurm  ## All tests: unit, real ranks, TypeScript, real browser; a table says how long each part took
	@$(PYTHON) .ci/parts.py $(if $(filter 0,$(RERUNS)),,--again) $(if $(AFTER_FIRST),,test-first) $(TESTS)$(WITH:%=+%)

# More processes than cores: tests with real ranks wait as often as they compute. A file's tests stay together and share
# its server and group; the long files begin first (tests/conftest.py).
JOBS ?= 5
# How often a failed test is run again: by NAME-again, when all parts are done, so that nothing runs beside it. The summary
# names what passed only then: a fault too, but one that comes seldom.
export RERUNS ?= 1
# Where a fixture is broken, each of its tests waits to its limit, and a run that is cut off after an hour names none.
MAXFAIL ?= 20

# Two arguments: the part, and which tests. What failed is noted for the second run. pytest ends with 1 where tests failed; with
# another number it has not run all of them, and a second run of some would be no answer.
FAILED := $(CURDIR)/.venv/failed
PYTEST = $(BIN)/python -m pytest $(2) -o cache_dir=$(FAILED)/$(1) -rfE \
	|| { status=$$?; [ $$status = 1 ] || rm -rf $(FAILED)/$(1); exit $$status; }
PYTEST_AGAIN = $(BIN)/python -m pytest $(2) -o cache_dir=$(FAILED)/$(1) --last-failed --last-failed-no-failures none --maxfail 3 -rfE
PYTHON_TESTS := tests -m "not ray"
RAY_TESTS := tests/clusters -m ray

# Short tests of the core, and those of the parts that a change is in. Where they fail twice, nothing else is run.
test-first: .venv/ready .venv/catalogues
	@rm -rf $(FAILED)/first
	@$(BIN)/python .ci/changed.py > .venv/first
	$(call PYTEST,first,$$(cat .venv/first) -m "not ray" --numprocesses $(JOBS) --dist loadfile)

test-first-again: .venv/ready
	$(call PYTEST_AGAIN,first,$$(cat .venv/first) -m "not ray")

# .ci/parts.py says that they have passed.
HAVE_PASSED = $(if $(AFTER_FIRST),$(addprefix --ignore=,$(shell cat .venv/first)))

# Collects once before: else each of the workers compiles all files, of a new checkout, at the same time.
test-python: .venv/ready .venv/catalogues
	@rm -rf $(FAILED)/python
	$(BIN)/python -m pytest tests --collect-only --quiet > .venv/collected || { cat .venv/collected; exit 1; }
	$(call PYTEST,python,$(PYTHON_TESTS) $(HAVE_PASSED) --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder \
		--max-worker-restart 1 --maxfail $(MAXFAIL))

test-python-again: .venv/ready
	$(call PYTEST_AGAIN,python,$(PYTHON_TESTS))

test-ray: .venv/ready  ## Launchers on a real Ray; its cluster takes 20 s to start, and is started once
	@rm -rf $(FAILED)/ray
	$(call PYTEST,ray,$(RAY_TESTS))

test-ray-again: .venv/ready
	$(call PYTEST_AGAIN,ray,$(RAY_TESTS))

test-versions: .venv/ready  ## A group on the oldest and the newest IPython 8
	$(BIN)/python tests/matrix/run.py --quick

test-versions-again: test-versions

test-without: .venv/ready  ## Remove parts (PART, or those whose turn is today) from a copy, and test the core and the other parts there
	$(BIN)/python .ci/without.py $(PART)

test-without-again: test-without

matrix: .venv/ready  ## All versions whose torch is a build for the CPU; docs/compatibility.md is made of what ran
	$(BIN)/python tests/matrix/run.py

test-typescript: .venv/ready
	npm run --silent test

test-typescript-again: test-typescript

# Half of the files each. Each half has a JupyterLab and a Chromium of its own, and says what it did when it is done.
BROWSER := test-browser-1 test-browser-2
PORT ?= 1898

test-browser: .venv/frontend browser ui-tests/node_modules
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target --keep-going $(BROWSER)

test-browser-1 test-browser-2: test-browser-%:
	@rm -rf ui-tests/test-results/$*
	cd ui-tests && JUPYTER_DIST_TEST_PORT=$(PORT)$* ../.ci/ownnetwork npx playwright test --retries 0 --shard $*/2 --output test-results/$*

test-browser-again: .venv/frontend browser ui-tests/node_modules
	@cd ui-tests && JUPYTER_DIST_TEST_PORT=$(PORT)1 ../.ci/ownnetwork ../.ci/failedpages test-results/1 test-results/2

test-browser-1-again test-browser-2-again: test-browser-%-again:
	@cd ui-tests && JUPYTER_DIST_TEST_PORT=$(PORT)$* ../.ci/ownnetwork ../.ci/failedpages test-results/$*

test-package: .venv/package  ## Build wheel, sdist and npm tarball as a release does, and look into them
	$(BIN)/python -m pytest tests/packaging

test-package-again: test-package

# The third-party extension is built against the npm package.
release-dry-run: .venv/package third-party  ## Build the packages into dist/, install them, and say which tag is next
	rm -rf dist && JUPYTER_DIST_KEEP=$(CURDIR)/dist $(BIN)/python -m pytest tests/packaging
	@ls -l dist; node -p '"The tag is v" + require("./package.json").version'

# The package is installed, and pip finds there what its extras need: nothing is built for that.
.venv/package: .venv/ready
	$(INSTALL) "jupyter_dist[test,package]"
	$(WITHOUT_IRIS)
	touch $@

# With jupyter-collaboration, with jupyter-server-nbmodel, in Notebook 7 and in JupyterHub. The other tests have these extensions switched off.
BESIDE := test-beside-beside test-beside-nbmodel

test-beside: .venv/beside .venv/frontend browser ui-tests/node_modules
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target --keep-going $(BESIDE)

$(BESIDE): test-beside-%:
	cd ui-tests && npx playwright test --retries 0 --config $*.config.ts --output test-results/$*

# All of it: with servers and a browser that have not seen what failed.
test-beside-again: test-beside

.venv/beside: .venv/ready
	$(INSTALL) "jupyter_dist[test,beside]"
	$(WITHOUT_IRIS)
	touch $@

# A third-party extension, built against the package as npm would install it; ui-tests/tests/thirdparty.spec.ts installs
# it.
THIRD := ui-tests/third-party
PACKAGE := $(THIRD)/node_modules/jupyter-dist

third-party: $(THIRD)/labextension/package.json

$(THIRD)/labextension/package.json: $(PACKAGE)/package.json $(THIRD)/package.json $(THIRD)/tsconfig.json $(THIRD)/src/index.ts
	cd $(THIRD) && npm run --silent build

$(PACKAGE)/package.json: package.json lib/index.js labextension/src/tokens.ts
	rm -rf $(PACKAGE) && mkdir -p $(PACKAGE)
	npm pack --silent --pack-destination $(THIRD) > /dev/null
	tar xzf $(THIRD)/jupyter-dist-*.tgz -C $(PACKAGE) --strip-components 1 && rm $(THIRD)/jupyter-dist-*.tgz
	touch $@

lib/index.js:
	npm run --silent build:lib

ui-tests/node_modules: ui-tests/package-lock.json
	cd ui-tests && npm ci --silent --no-audit --no-fund
	touch $@

generate: .venv/ready  ## The types of the extension, from jupyter_dist/protocol; the blocking client
	$(BIN)/python .ci/generate.py

translations: .venv/ready  ## The page's strings into the catalogues of jupyter_dist/locale; names what has no translation
	$(BIN)/python .ci/translations.py

lint: .venv/ready ui-tests/node_modules  ## Style, types, import rules, spelling, and that generated files are up to date
	$(BIN)/python .ci/generate.py --check
	$(BIN)/python .ci/translations.py --check
	$(BIN)/ruff check jupyter_dist tests benchmarks .ci/generate.py .ci/generate_answers.py .ci/generate_api.py .ci/generate_client.py .ci/catalogues.py .ci/buildhook.py .ci/translations.py docs/conf.py docs/_ext
	$(BIN)/ruff format --check jupyter_dist tests benchmarks .ci/generate.py .ci/generate_answers.py .ci/generate_api.py .ci/generate_client.py .ci/catalogues.py .ci/buildhook.py .ci/translations.py docs/conf.py docs/_ext
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house
	$(BIN)/codespell *.md docs jupyter_dist tests benchmarks labextension/src ui-tests/tests
	npm run --silent lint
	npx tsc -p ui-tests

docs: .venv/ready  ## The site, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

WHEELS ?= wheels
OUT ?= gpu-results
PLAN ?= first

gpu:  ## Ask a GPU, on a machine with torch and no network; tests/gpu/README.md
	PYTHON=$(PYTHON) bash tests/gpu/run.sh $(WHEELS) $(OUT) $(PLAN)

gpu-wheels:  ## What `make gpu` installs, where there is a network
	PYTHON=$(PYTHON) bash tests/gpu/wheelhouse.sh $(WHEELS)

bench: .venv/ready  ## The figures of docs/benchmarks, against rivals in the same run
	$(BIN)/python -m benchmarks

COMMIT ?= HEAD~1

figures: .venv/ready  ## Start, cells, output, saves, memory: of COMMIT (the last but one) and of this tree in turn, as ratios
	$(BIN)/python -m benchmarks.before $(COMMIT)

pictures: .venv/frontend browser ui-tests/node_modules  ## The pictures of README and docs/images, and the moving one
	cd ui-tests && npx playwright test --config screenshots.config.js
	$(BIN)/python .ci/moving.py ui-tests/test-results/frames docs/images/moving.gif

setup:
	@$(MAKE) --no-print-directory --jobs 2 .venv/frontend ui-tests/node_modules

# What test-beside and test-package need, at once: pip alone takes seconds to find that all else is there.
extras: .venv/ready
	$(INSTALL) "jupyter_dist[test,beside,package]"
	$(WITHOUT_IRIS)
	touch .venv/beside .venv/package

# Frameworks bring torch along: the one that is there stays. fastai would bring torchvision and spacy as well.
FRAMEWORKS := tests/frameworks/requirements.txt tests/frameworks/requirements-no-deps.txt

.venv/ready: pyproject.toml package.json package-lock.json $(FRAMEWORKS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	npm ci --silent --no-audit --no-fund & npm=$$!; $(NEWER_PIP); \
		$(PIP) $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") "$(TORCH)" && wait $$npm
	$(BIN)/pip list --disable-pip-version-check --format=freeze | grep '^torch==' > .venv/constraints.txt
	$(INSTALL) \
		--editable ".[test]" --requirement tests/frameworks/requirements.txt
	$(PIP) --no-deps --requirement tests/frameworks/requirements-no-deps.txt
	$(WITHOUT_IRIS)
	touch $@ .venv/frontend

# Built by the install, and again after an edit or a pull: the browser tests are about what stands in the sources. The
# build touches package-lock.json, which gets its time back: else everything would be installed again.
.venv/frontend: $(shell find labextension -type f) .venv/catalogues | .venv/ready
	@if [ ! -e $@ ] || [ -n "$$(find labextension -type f -newer $@)" ]; then \
		touch -r package-lock.json .venv/locked && $(INSTALL) --no-deps --editable . && \
		touch -r .venv/locked package-lock.json && touch $@; fi

# What JupyterLab reads of them is no part of the repository. A build of the package makes it, too.
.venv/catalogues: $(wildcard jupyter_dist/locale/*/LC_MESSAGES/*.po) | .venv/ready
	$(BIN)/python .ci/catalogues.py
	touch $@

browser:
	@sh .ci/browser

slurm:
	@sh .ci/slurm

clean:
	rm -rf .venv .matrix node_modules lib jupyter_dist/labextension jupyter_dist/_version.py ui-tests/node_modules *.tsbuildinfo
