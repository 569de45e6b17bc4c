#!/usr/bin/env bash
# Tries to leave the folder that it was given, or to change what it may only read. Outside a sandbox nothing is tried.
[ -e /dev/exthost/http ] || { echo "not in a sandbox" >&2; exit 64; }
cd /workspace || exit 1

attempt() { # attempt NAME COMMAND...
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "$name: done"; else echo "$name: refused"; fi
}

attempt "above the root" sh -c 'echo x > /workspace/../mirror'
attempt "a link to above" sh -c 'ln -s .. up && echo x > up/mirror'
attempt "a link far away" sh -c 'ln -s ../../../../../../etc/hostname name && cat name'
attempt "an absolute link" sh -c 'ln -s /proc/self/root root && cat root/etc/hostname'
attempt "a link that was there" cat out/canary
attempt "the same with a slash" ls out/
attempt "writing through it" sh -c 'echo x > out/canary'
attempt "a file behind a link" cat secret
attempt "moving from a read-only root" mv /skill/SKILL.md /workspace/SKILL.moved
attempt "a second name for a read-only file" sh -c 'ln /skill/SKILL.md hard && echo x >> hard'
attempt "emptying a read-only file" sh -c ': > /skill/scripts/mirror.sh'
attempt "the time of a read-only file" touch /skill/scripts
attempt "the process table" cat /proc/self/root/etc/hostname
attempt "a device" sh -c 'head -c1 /dev/sda'
attempt "the password file" grep root /etc/passwd
attempt "deleting all" rm -rf /skill /usr /
