# Sourced by cases.
greet() { echo "hello, ${1:-nobody}"; }
COMMON_LOADED=yes
log() { printf '[%s] %s\n' "$1" "${*:2}" >&2; }
