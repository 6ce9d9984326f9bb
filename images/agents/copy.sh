#!/bin/sh
# Copy this container's root, the jail image, to a claim's root.partial. `soperator.agents.populate seal` checks, completes and places it.
#
# Runs in the jail's own image, whatever distribution that is: POSIX sh, coreutils, findutils, sed. Killed at any point, a
# later run starts the copy over; the manifest, written last, says that the copy is whole. Usage: copy.sh [CLAIM [FROM]]
set -eu
export LC_ALL=C
claim=${1:-/mnt/jail} from=${2:-/}
partial=$claim/root.partial records=$claim/.soperator
# shellcheck source=images/agents/claim.sh
. "${0%/*}/claim.sh"

errors=$(mktemp -p "${TMPDIR:-/dev/shm}") || errors=/dev/null

cd "$from"
# One cp is bound by one core, so the folders of the third level are copied side by side; those above them are made first. The options:
# -x stays on this root's own file system, -a keeps hard links, extended attributes (capabilities) and numeric owners.
find . -xdev -mindepth 1 -maxdepth 2 -type d -printf '%P\0' | (cd "$partial" && xargs -0 mkdir -p --) 2>> "$errors" || failed=yes
find . -xdev -mindepth 1 -maxdepth 3 ! -type d -print0 | xargs -0 -r -n 9999 cp -ax --parents -t "$partial" -- 2>> "$errors" &
find . -xdev -mindepth 3 -maxdepth 3 -type d -print0 | xargs -0 -r -n 4 -P "$(nproc)" cp -ax --parents -t "$partial" -- 2>> "$errors" || failed=yes
wait $! || failed=yes
if [ -n "${failed:-}" ]; then
    why=$(head -n 1 "$errors") room=$(df -h --output=avail "$claim" | tail -n 1 | tr -d ' ')
    complain 1 "Copying $from to $partial failed: ${why:-a tool ended without a word}; $room are free on the claim."
fi
find . -xdev -maxdepth 2 -type d | while IFS= read -r folder; do
    chown --reference="$folder" "$partial/$folder" && chmod --reference="$folder" "$partial/$folder" && touch -r "$folder" "$partial/$folder"
done
(cd "$partial" && rm -rf dev proc sys run tmp soperator .dockerenv etc/hosts etc/hostname etc/resolv.conf etc/mtab)

# What was to be copied, by size and path, and a checksum of every 64th file: read from the image, not from the copy.
find . -xdev \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./run -o -path ./tmp -o -path ./soperator -o -path ./.dockerenv \) -prune \
    -o -type f ! -path ./etc/hosts ! -path ./etc/hostname ! -path ./etc/resolv.conf ! -path ./etc/mtab -printf '%s %P\0' > "$records/manifest.new"
sed -z -n '1~64p' "$records/manifest.new" | cut -z -d ' ' -f 2- | xargs -0 sha256sum > "$records/sums"
mv "$records/manifest.new" "$records/manifest"
