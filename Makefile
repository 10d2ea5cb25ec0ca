# For contributors, and exactly what .ci/run runs. To use MemoryHub you need none of it: see README.md.
PYTHON ?= python3
# The tools of .venv, or those on the path where everything is installed already.
BIN = $(shell test -x .venv/bin/ruff && echo .venv/bin/)
MANAGE = $(PYTHON) manage.py
PROJECT_CHECKS = MEMORYHUB_HOME="$$home" MEMORYHUB_URL=https://hub.example.org MEMORYHUB_DEBUG=0 DATABASE_URL=

.PHONY: help dev test test-postgres browser format lint types checks coverage bench contract soak reference picture messages lock ci

help:
	@echo "make dev            make .venv with everything a contributor needs"
	@echo "make test           the suite on SQLite"
	@echo "make test-postgres  the suite on the PostgreSQL server of TEST_DATABASE_URL"
	@echo "make coverage       the suite on SQLite, with the branches that it takes: the floor is in pyproject.toml"
	@echo "make browser        the journeys in Chromium, which has to be there"
	@echo "make format         style of code and templates, mended where a tool can"
	@echo "make lint types     style, templates and import contracts; static types"
	@echo "make checks         migrations complete, deployment settings safe"
	@echo "make bench          benchmarks"
	@echo "make contract       the REST API against its description, a minute for each scope"
	@echo "make soak           2,000 turns, 100 killed workers, 16 writers, 16 REST clients, an agent and the hub on one file, against real processes (12 minutes)"
	@echo "make reference      write docs/reference/ anew from the code"
	@echo "make picture        take the README's picture anew from the demo, in Chromium"
	@echo "make messages CODE=de   the texts of the pages for translators, and what they made of them (docs/translating.md)"
	@echo "make lock           write the lock files in requirements/ anew from pyproject.toml"
	@echo "make ci             lint types checks test test-postgres browser"

dev:
	@$(MANAGE) test --version

test: dev
	env -u TEST_DATABASE_URL $(MANAGE) test -m "not browser"

test-postgres: dev
	@test -n "$$TEST_DATABASE_URL" || { echo "Set TEST_DATABASE_URL, for example postgres://user:password@127.0.0.1/name"; exit 1; }
	MEMORYHUB_REQUIRE_POSTGRES=1 $(MANAGE) test -m "not browser" -n 4 --dist worksteal

coverage: dev
	env -u TEST_DATABASE_URL $(MANAGE) test -m "not browser" -n 4 --dist worksteal --cov

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
	$(BIN)python bench/run.py
	$(BIN)python bench/store.py
	$(BIN)python bench/search.py
	$(BIN)python bench/doors.py
	$(BIN)python bench/pages.py

contract: dev
	$(BIN)python bench/contract.py

soak: dev
	$(BIN)python bench/soak.py turns
	$(BIN)python bench/soak.py kills
	$(BIN)python bench/soak.py writers
	$(BIN)python bench/soak.py consolidators
	$(BIN)python bench/soak.py rest
	$(BIN)python bench/soak.py agent
	$(BIN)python bench/soak.py killed-syncs

reference: dev
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)python -c "import django; django.setup(); from tests.reference import write; write()"

picture: dev
	$(BIN)python bench/picture.py

messages: dev
	@test -n "$(CODE)" || { echo "Name the language, for example: make messages CODE=de"; exit 1; }
	@mkdir -p locale
	$(BIN)python manage.py makemessages --locale $(CODE) --no-location --ignore .venv --ignore tests --ignore bench
	$(BIN)python manage.py compilemessages --locale $(CODE) --ignore .venv

# One file for every supported Python; hashes, and no host named. The second may not disagree with the first.
lock:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(PYTHON) -m venv "$$tools" && "$$tools/bin/pip" install --quiet uv && \
	compile="$$tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header pyproject.toml --extra postgres" && \
	$$compile --extra dev --output-file requirements/dev.txt && \
	$$compile --constraint requirements/dev.txt --output-file requirements/serve.txt

ci: lint types checks test test-postgres browser
