# What a contributor runs. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help serve demo test test-slow check format kb docs db lock images audit sbom clean

# From the command line only (make serve PORT=9000): HOST is in the environment of many shells for another purpose.
HOST =
PORT =
ARGS =

BIN := .venv/bin
# The demonstration has a folder of its own, and none of the settings of a service that runs here.
DEMO = env $$(env | sed -n 's/^\(TRIAGE_[A-Z0-9_]*\)=.*/-u \1/p') TRIAGE_DATA_DIR=demo-data
RUNTIME := .venv/.installed
DEV := .venv/.installed-dev

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(RUNTIME)  ## Start the service on http://127.0.0.1:8000 (HOST=… PORT=…)
	@exec $(BIN)/torchtriage serve $(if $(HOST),--host $(HOST)) $(if $(PORT),--port $(PORT))

demo: $(RUNTIME)  ## Start a service with a month of sample incidents on http://127.0.0.1:8010, in demo-data/ (PORT=…)
	@$(DEMO) $(BIN)/torchtriage demo --once --count 600
	@exec $(DEMO) $(BIN)/torchtriage serve --port $(or $(PORT),8010)

# The fast tests wait about as long as they compute, so four processes keep two cores busy. The slow ones measure times under
# load, so each of their processes has a core.
TOGETHER := --dist loadfile --no-loadscope-reorder

test: $(DEV)  ## Run the fast tests, on a real Postgres and a real browser too (ARGS="tests/web -k upload")
	@$(BIN)/python -m scripts.test_needs
	@$(BIN)/pytest -n 4 $(TOGETHER) -m "not slow" $(ARGS)

test-slow: $(DEV)  ## Run the slow tests: every page in a browser, outages, floods of requests (ARGS as for test)
	@$(BIN)/python -m scripts.test_needs
	@$(BIN)/pytest -n auto --maxprocesses 4 $(TOGETHER) -m slow $(ARGS)

check: $(DEV)  ## Check format, lint, types, layers and the knowledge base
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/torchtriage kb check

format: $(DEV)  ## Format the code and put imports in order
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

kb: $(RUNTIME)  ## Check every entry of the knowledge base
	$(BIN)/torchtriage kb check

docs: $(DEV)  ## Regenerate docs/knowledge.md, docs/coverage.md, docs/facts.md and the JSON Schema
	@$(BIN)/python -m scripts.knowledge_docs

db: $(RUNTIME)  ## Migrate the database to the newest schema (serve does it too)
	$(BIN)/torchtriage db upgrade

lock: $(DEV)  ## Update the lock files to the newest versions that pyproject.toml allows
	scripts/lock.sh

images:  ## Update the image digests in Dockerfile and docker-compose.yml
	@scripts/images.sh

audit: $(DEV)  ## Check the locked versions against known advisories
	@scripts/audit.sh

sbom: $(RUNTIME)  ## Write CycloneDX SBOMs of the package and the image to build/
	@mkdir -p build
	@$(BIN)/python -m scripts.sbom requirements.lock > build/sbom.cdx.json
	@$(BIN)/python -m scripts.sbom requirements-image.lock > build/sbom-image.cdx.json

clean:  ## Remove .venv and all caches; stored logs and databases stay
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find app bench migrations scripts tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(RUNTIME): requirements.lock pyproject.toml scripts/install.sh
	@scripts/install.sh requirements.lock
	@touch $@

# The development lock contains the runtime lock, so this target covers both.
$(DEV): requirements-dev.lock requirements.lock pyproject.toml scripts/install.sh
	@scripts/install.sh requirements-dev.lock
	@touch $(RUNTIME) $@
