# shellcheck shell=sh
# What copy.sh finds on the claim: it goes on to copy only where an empty root.partial is to be filled, and ends where there is nothing to copy.
# SOPERATOR_JAIL_IMAGE, SOPERATOR_REQUEST and SOPERATOR_MODE say what is copied and why. Exit code 65: no later run will fare better.
: "${claim:?}" "${partial:?}" "${records:?}"
request=${SOPERATOR_REQUEST:-} intent="${SOPERATOR_JAIL_IMAGE:-} ${SOPERATOR_REQUEST:-} ${SOPERATOR_MODE:-}"

complain() {
    code=$1
    shift
    echo "soperator: $*" >&2
    { echo "soperator: $*" > /dev/termination-log; } 2> /dev/null || true
    exit "$code"
}

mkdir -p "$records" || complain 1 "Cannot write to $claim."
if command -v flock > /dev/null; then
    exec 9> "$records/lock"
    flock -n 9 || complain 1 "Another populate Job is at work in $claim."
fi
if ! find . -maxdepth 0 -printf '' 2> /dev/null || ! cp --help 2>&1 | grep -q -- --parents; then
    complain 65 "The jail image has no GNU coreutils and findutils (busybox is not enough): fill the jail from another image."
fi
[ ! -e "$records/moving" ] || exit 0 # the copy is being put in its place already
if [ -e "$records/populated.json" ]; then
    [ -n "$request" ] || exit 0
    ! grep -qF "\"request\": \"$request\"" "$records/populated.json" || exit 0
elif [ -n "$(ls -A "$claim/root" 2> /dev/null)" ]; then
    [ ! -e "$records/manifest" ] || [ -e "$partial" ] || exit 0 # in its place, and killed before the record was written
    [ "${SOPERATOR_MODE:-}" = Overwrite ] || complain 65 "$claim/root holds files that no populate Job sealed; empty it," \
        "set spec.jail.populate to Never to use it as it is, or ask for spec.jail.refill with mode Overwrite."
fi
if [ -e "$records/manifest" ] && [ -e "$partial" ] && [ "$(cat "$records/intent" 2> /dev/null)" = "$intent" ]; then
    exit 0 # copied, not yet sealed
fi
rm -rf "$records/manifest" "$partial" || complain 1 "Cannot remove what an interrupted copy left in $partial."
[ "${SOPERATOR_MODE:-}" != Overwrite ] || rm -rf "$claim/root.previous" # what the overwrite before this one replaced
{ mkdir "$partial" && : > "$records/began" && echo "$intent" > "$records/intent"; } || complain 1 "Cannot write to $claim; is it full?"
