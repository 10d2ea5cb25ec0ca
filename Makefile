# Tasks for contributors. To use MemoryHub, you need none of them: see README.md.
PYTHON ?= python3
# Tools are taken from .venv, or from the path if they are installed there.
BIN = $(shell test -x .venv/bin/ruff && echo .venv/bin/)
MANAGE = $(PYTHON) manage.py
PROJECT_CHECKS = MEMORYHUB_HOME="$$home" MEMORYHUB_URL=https://hub.example.org MEMORYHUB_DEBUG=0 DATABASE_URL=

.PHONY: help dev test test-postgres browser format lint types checks coverage bench contract soak day drills programs client adapters deploy-files reference pictures messages lock ci

help:
	@echo "make dev            create .venv with the development tools"
	@echo "make test           run the tests on SQLite, without the browser tests"
	@echo "make test-postgres  run the tests on the PostgreSQL server in TEST_DATABASE_URL, without the browser tests"
	@echo "make browser        run the browser tests (needs Chromium)"
	@echo "make coverage       run the tests on SQLite and measure branch coverage (the minimum is in pyproject.toml)"
	@echo "make format         format code and templates"
	@echo "make lint           check style, templates and imports"
	@echo "make types          check static types"
	@echo "make checks         check that migrations are complete and the deployment settings safe"
	@echo "make ci             all of the above checks and tests"
	@echo "make bench          run the benchmarks"
	@echo "make contract       test the REST API against its OpenAPI description (a minute for each scope)"
	@echo "make soak           stress real processes: 2,000 turns, 100 killed workers, 16 concurrent writers (12 minutes)"
	@echo "make day            let 20 agents and 5 people use one hub for an hour, with backups and restores"
	@echo "make drills         break the disk, the database, the clock and more under a running hub (9 minutes, as root)"
	@echo "make programs       run real coding agents with a scripted model: the hub follows them, and one uses it over MCP"
	@echo "make client         build the Python client's wheel in dist/, install it without the hub and use it"
	@echo "make adapters       test the client's adapters against the real agent frameworks, in .venv-adapters"
	@echo "make deploy-files   check the files for Compose and Kubernetes with the tools that read them, in .venv-deploy"
	@echo "make reference      generate docs/reference/ from the code"
	@echo "make pictures       take the README's pictures of the demo in Chromium"
	@echo "make messages CODE=de   update and compile the translation files of a language (docs/translating.md)"
	@echo "make lock           update the lock files in requirements/ from pyproject.toml"
	@echo "To run one test: python3 manage.py test tests/test_house.py::test_files_stay_small"

dev:
	@$(MANAGE) test --version

test: dev
	env -u TEST_DATABASE_URL $(MANAGE) test -m "not browser"

test-postgres: dev
	@test -n "$$TEST_DATABASE_URL" || { echo "Set TEST_DATABASE_URL, for example postgres://user:password@127.0.0.1/name"; exit 1; }
	MEMORYHUB_REQUIRE_POSTGRES=1 $(MANAGE) test -m "not browser and (not slow or postgres)" $(OPTIONS)

coverage: dev
	env -u TEST_DATABASE_URL $(MANAGE) test -m "not browser" --cov

browser: dev
	env -u TEST_DATABASE_URL MEMORYHUB_REQUIRE_BROWSER=1 $(MANAGE) test -m browser

format: dev
	$(BIN)ruff check --fix .
	$(BIN)ruff format .
	find templates -name '*.html' -exec $(BIN)djade --target-version 5.2 {} +

lint: dev
	$(BIN)ruff check .
	$(BIN)ruff format --check .
	find templates -name '*.html' -exec $(BIN)djade --check --target-version 5.2 {} +
	$(BIN)djlint --lint --quiet templates
	$(BIN)lint-imports

types: dev
	$(BIN)mypy

checks: dev
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && \
	$(PROJECT_CHECKS) $(MANAGE) makemigrations --check --dry-run && \
	$(PROJECT_CHECKS) $(MANAGE) check --deploy --fail-level WARNING

bench: dev
	$(BIN)python bench/speed/scaling.py
	$(BIN)python bench/speed/appends.py
	$(BIN)python bench/search/measure.py
	$(BIN)python bench/search/ablation.py
	$(BIN)python bench/search/kinds.py
	$(BIN)python bench/speed/interfaces.py
	$(BIN)python bench/speed/load.py
	$(BIN)python bench/speed/live.py
	$(BIN)python bench/speed/pages.py
	$(BIN)python bench/origins.py
	$(BIN)python bench/speed/graph.py

contract: dev
	$(BIN)python bench/api_contract.py

soak: dev
	$(BIN)python bench/soak/soak.py turns
	$(BIN)python bench/soak/soak.py kills
	$(BIN)python bench/soak/soak.py writers
	$(BIN)python bench/soak/soak.py consolidators
	$(BIN)python bench/soak/soak.py rest
	$(BIN)python bench/soak/soak.py agent
	$(BIN)python bench/soak/soak.py killed-syncs

day: dev
	$(BIN)python bench/drills/day.py

drills: dev
	$(BIN)python bench/drills/drills.py

programs: dev
	$(BIN)python bench/programs/programs.py
	$(BIN)python bench/programs/mcp_memory.py

client: dev
	$(BIN)python bench/client_wheel.py dist

adapters:
	test -d .venv-adapters || $(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/pip install --quiet --no-deps --requirement requirements/dev.txt
	.venv-adapters/bin/pip install --quiet --requirement requirements/adapters.txt
	env -u TEST_DATABASE_URL .venv-adapters/bin/python -m pytest tests/adapters -n 0 -W default

deploy-files:
	test -d .venv-deploy || $(PYTHON) -m venv .venv-deploy
	.venv-deploy/bin/pip install --quiet --requirement requirements/deploy.txt
	! POSTGRES_PASSWORD=any .venv-deploy/bin/docker-compose --file deploy/compose.yaml config --quiet 2>&1 | grep .
	.venv-deploy/bin/kubernetes-validate --strict --quiet deploy/kubernetes.yaml

reference: dev
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)python -c "import django; django.setup(); from tests.reference import write; write()"

pictures: dev
	$(BIN)python bench/pictures.py

messages: dev
	@test -n "$(CODE)" || { echo "Choose a language, for example: make messages CODE=de"; exit 1; }
	@mkdir -p locale
	$(BIN)python manage.py makemessages --locale $(CODE) --no-location --ignore .venv --ignore tests --ignore bench
	$(BIN)python manage.py compilemessages --locale $(CODE) --ignore .venv

# Lock files for all supported Pythons, with hashes and without host names. container.txt is serve.txt with optional
# packages; both are subsets of dev.txt. installer.txt is uv, which installs them.
lock:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(PYTHON) -m venv "$$tools" && "$$tools/bin/pip" install --quiet uv && \
	compile="$$tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header pyproject.toml --extra postgres" && \
	$$compile --extra dev --output-file requirements/dev.txt && \
	$$compile --constraint requirements/dev.txt --output-file requirements/serve.txt && \
	$$compile --extra oidc --extra passkeys --extra metrics --extra redis --extra traces --constraint requirements/dev.txt \
		--output-file requirements/container.txt && \
	echo uv | "$$tools/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header - --output-file requirements/installer.txt

ci: lint types checks test test-postgres browser
