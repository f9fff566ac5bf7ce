# make run    install what is missing, build, serve with a key to try
# make test   install what is missing, run every test
# make build  leaves target/release/plumbline

.PHONY: run test build setup

run: build
	target/release/plumbline serve --data data --create-key 100

test: setup
	cargo test --workspace --locked

build: setup
	cargo build --release --locked

setup:
	@tools/setup
