# make run    install what is missing, build, serve with a key to try
# make test   install what is missing, run every test
# make lint   check formatting, clippy, rustdoc, and the links and rules of the documents
# make fmt    format the code
# make bless  regenerate the committed files that tests compare with the code
# make build  leaves target/release/plumbline
# make chaos  breaks things on purpose, counts what is left; root    ONLY=a,b takes some cases, PREVIOUS=PROGRAM to upgrade from
# make hostile  audits pages and servers that attack the service     ONLY=a,b takes some cases; its short part is in make test
#
# make bench-agreement  Plumbline beside Lighthouse, page by page        ONLY=a,b takes some pages, DEVICE=desktop
# make bench-fixtures   Lighthouse's own smoke tests                     LIGHTHOUSE="DIR DIR", its checkouts
# make bench-link       the link beside a packet-level network; root     ONLY=a,b
# make bench-schema     whatever the API's description allows, 20,000 requests and more

.PHONY: run test lint lint-rest fmt bless build chaos hostile setup bench-agreement bench-fixtures bench-link bench-schema corpus

# The pages and the reference tools are not part of the repository; they are in a directory next to it.
SHARED ?= ../shared
CORPUS ?= target/corpus
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
PLUMBLINE := $(TARGET)/release/plumbline
ONLY ?=
DEVICE ?= mobile
LIGHTHOUSE ?=
PREVIOUS ?=

run: build
	$(PLUMBLINE) serve --data data --create-key 100

# `cargo test` also builds the program, for its integration tests. `cargo build` would select other features of some
# dependencies (`tokio/test-util` among them) and compile almost everything a second time. Tests with a browser mostly
# wait, so that three of them fit on two cores. The targets are named because there are no examples in documentation
# comments, and looking for them takes a while. Incremental compilation makes a first build a quarter longer, so it is
# only used where something was compiled with it before.
test:
	@tools/setup test
	CARGO_INCREMENTAL=$(if $(wildcard $(TARGET)/debug/incremental/*),1,0) RUST_TEST_THREADS=$${RUST_TEST_THREADS:-3} \
	  cargo test --workspace --locked --no-fail-fast --lib --bins --tests
	tools/schema $(TARGET)/debug/plumbline

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(MAKE) --no-print-directory lint-rest
	cargo test --workspace --locked --test house

# The part of `make lint` that .ci/run does not run yet. `--examples` selects the features of dependencies that clippy has
# selected, so that they are not checked again.
lint-rest:
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked --lib --bins --examples

fmt:
	cargo fmt --all

# Each of these tests compares a file with the code, and writes the file if BLESS is set. Read the difference before you
# commit it.
bless:
	BLESS=1 cargo test --workspace --locked --lib --test service --test house equals_the_committed_file

build: setup
	cargo build --release --locked

chaos: build
	@tools/setup test
	chaos/run --only '$(ONLY)' --previous '$(PREVIOUS)'

hostile:
	@tools/setup test
	cargo test --release --locked -p plumbline --test hostile -- --all --only '$(ONLY)'

setup:
	@tools/setup

bench-agreement: build corpus
	@node $(SHARED)/corpus/serve.mjs $(CORPUS) --port 9100 > target/corpus.urls & server=$$!; \
	trap 'kill $$server' EXIT; \
	for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s target/corpus.urls ] && break; sleep 0.5; done; sleep 1; \
	bench/agreement --pages target/corpus.urls --lighthouse $(SHARED)/tools/lighthouse --again --only '$(ONLY)' \
	  --device $(DEVICE)

bench-fixtures: build
	bench/fixtures $(foreach checkout,$(LIGHTHOUSE),--lighthouse $(checkout)) --again --only '$(ONLY)'

bench-schema: build
	tools/schema $(PLUMBLINE) 1600

bench-link: setup corpus
	cargo build --release --locked --example visit_once -p plumbline-agent
	bench/link --pages $(CORPUS) --truth $(SHARED)/tools/packet_link.py --lighthouse $(SHARED)/tools/lighthouse \
	  --only '$(ONLY)'

corpus:
	@[ -e $(SHARED)/corpus/fetch.sh ] && [ -e $(SHARED)/tools ] || \
	  { echo "$(SHARED)/corpus and $(SHARED)/tools are missing: make … SHARED=DIR says where they are" >&2; exit 1; }
	ONLY='$(ONLY)' bash $(SHARED)/corpus/fetch.sh $(CORPUS)
