#!/usr/bin/env bash
# Much of the language in one script: what most shell scripts of skills use, and what they use now and then.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../lib/common.sh"

declare -A total=()
declare -a names=(north south "far east")
while IFS=, read -r region amount; do
  [[ $region =~ ^[a-z]+( [a-z]+)?$ && $amount == +([0-9]) ]] || continue
  ((total[$region] += amount)) || true
done < <(printf '%s\n' north,3 south,4 "far east,5" north,6 BAD,1 south,x)
for name in "${names[@]}"; do
  printf '%-10s|%05.2f|%s\n' "$name" "$(bc <<<"scale=2; ${total[$name]} / 4")" "${name^^}"
done | sort -t'|' -k2,2nr | tee >(wc -l >/tmp/lines) | sed -E 's/\|/ | /g'
echo "piped: ${PIPESTATUS[*]}"
cat <<TEXT
names: ${names[*]/#/<} ${#names[@]}, last ${names[-1]}, cut ${names[2]%% *}, default ${unset_name:-none}
TEXT
cat <<-'RAW'
	a tab is cut, $names is not
RAW
fails() { false; echo "in a test, errexit is off"; }
if ! (set -e; fails); then echo "it is on"; fi
set +e
output=$(trap 'echo cleaned' EXIT; missing_command_of_the_tour 2>/dev/null; echo "code $?")
echo "$output"
mapfile -t lines < <(seq 3)
printf -v joined '%s+' "${lines[@]}"
echo "${joined%+} = $((${joined%+}))"
exec 3>/tmp/log; log "kept" >&3; exec 3>&-
cat /tmp/log
slow() { sleep 0.2; echo slow; }
slow & quick=$!; echo "waiting"; wait "$quick"; echo "waited $?"
case ${names[2]} in far*) echo "far away" ;;& *east) echo "and east" ;; *) echo "nowhere" ;; esac
until (( ${#lines[@]} == 0 )); do unset 'lines[-1]'; done; echo "${#lines[@]} left"
trap 'echo "last words"' EXIT
exit 3
