#!/usr/bin/env bash
# Builds the wheel that is published: manylinux2014, linked by zig against the oldest glibc it allows,
# with no path of this machine inside.
#
#   scripts/wheel.sh                                 for x86-64
#   scripts/wheel.sh aarch64-unknown-linux-gnu       after rustup target add aarch64-unknown-linux-gnu
#
# Needs `pip install 'maturin[zig]'`. The wheel is put in target/wheels, or in $CARGO_TARGET_DIR/wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-x86_64-unknown-linux-gnu}

# Messages of panics name source files: of crates by their name and version, of this one as it lies.
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
flags=(--remap-path-prefix="$PWD/=" --remap-path-prefix="$registry=crates")
for index in "$registry"/*; do flags+=(--remap-path-prefix="$index=crates"); done
IFS=$'\x1f'
export CARGO_ENCODED_RUSTFLAGS="${flags[*]}"
unset IFS
exec maturin build --release --locked --zig --target "$target" --compatibility manylinux2014
