#!/usr/bin/env bash
# Builds an index in a control group of 1.5 times the memory that the build may take, and fails
# when the build fails or has held more than it may.
#
#   scripts/memory_cap.sh [MIB [GENERATE OPTIONS [BUILD OPTIONS]]]
#   scripts/memory_cap.sh 1024 "--n 10000000 --dim 128 --dtype u8" "--record u8"
#
# The group is made by hand (control groups version 2 or 1) or by systemd-run; where neither is
# allowed only the peak is compared. Files are in $TMPDIR and are removed. $RABITQ_SSD is the binary,
# the release build unless it is set.
set -euo pipefail
cd "$(dirname "$0")/.."
mib=${1:-96} generate=${2:---n 500000 --dim 128 --dtype u8} build=${3---record u8}
read -ra generate <<<"$generate"
read -ra build <<<"$build"

program=${RABITQ_SSD:-${CARGO_TARGET_DIR:-$PWD/target}/release/rabitq-ssd}
[[ -n ${RABITQ_SSD:-} ]] || cargo build --release --locked --quiet
work=$(mktemp -d)
base=$work/base.fbin
[[ " ${generate[*]} " == *" u8 "* ]] && base=$work/base.u8bin
group=
cleanup() {
  [[ -n $group ]] && rmdir "$group" || true
  rm -rf "$work"
}
trap cleanup EXIT

# Sets `within` to what starts a command in a group of so many bytes.
make_group() {
  local bytes=$1 parent limit
  for parent in /sys/fs/cgroup /sys/fs/cgroup/memory; do
    group=$parent/rabitq-ssd-$$
    mkdir "$group" 2>/dev/null || continue
    for limit in memory.max memory.limit_in_bytes; do
      if [[ -w $group/$limit ]] && echo "$bytes" >"$group/$limit"; then
        # shellcheck disable=SC2016
        within=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group")
        return
      fi
    done
    rmdir "$group"
  done
  group=
  if systemd-run --scope --quiet --property=MemoryMax="$bytes" true 2>/dev/null; then
    within=(systemd-run --scope --quiet --property=MemoryMax="$bytes")
  else
    echo "no control group: only the peak is compared"
    within=(env)
  fi
}

# The most resident bytes a process has had, until it ends.
watch_peak() {
  local kib peak=0
  while kib=$(awk '/^VmHWM:/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [[ -n $kib ]]; do
    peak=$kib
    sleep 0.05
  done
  echo $((peak * 1024))
}

cap=$((mib << 20))
"$program" generate --out "$base" "${generate[@]}" --quiet
make_group $((cap * 3 / 2))
"${within[@]}" "$program" build "$base" --out "$work/index" "${build[@]}" \
  --build-memory "$cap" --json >"$work/told" &
builder=$!
peak=$(watch_peak $builder)
wait $builder
# The build measures itself at the end of each stage, whatever was missed in between.
told=$(sed -n 's/.*"peak_memory_bytes":\([0-9]*\).*/\1/p' "$work/told" | tail -1)
peak=$((told > peak ? told : peak))
echo "allowed $cap bytes, held at most $peak ($((peak * 100 / cap)) %)"
"$program" verify "$work/index"
((peak <= cap))
