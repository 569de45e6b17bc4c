#!/bin/sh
# Where a script keeps things: the home folder, temporary files, its own folder, the project.
mkdir -p "$HOME/.config/tour" && echo kept > "$HOME/.config/tour/state" && cat ~/.config/tour/state
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
echo "in $(dirname "$tmp")" > "$tmp/x" && cat "$tmp/x"
ls "$HOME" -A
echo "home $HOME, user $(whoami), in $PWD"
cat orders.csv
cat "$(dirname "$0")/../lib/common.sh" | head -n 1
cd "$(dirname "$0")" && ls
