#!/bin/bash
# Scripts for both GNU and BSD tools: one of two spellings works, and the other one fails so that the first can follow.
cd /tmp || exit 1
day=$(date -u -d '2024-02-28 + 2 days' +%F 2>/dev/null || date -u -v+2d -jf %F 2024-02-28 +%F)
echo "$day"
date -u -r 86400 +%F 2>/dev/null || date -u -d @86400 +%F
printf 'one\ntwo\n' > f
stat -c %s f 2>/dev/null || stat -f %z f
stat -f%z f 2>/dev/null || stat -c%s f
if sed --version >/dev/null 2>&1; then sed -i 's/one/1/' f; else sed -i '' 's/one/1/' f; fi
cat f
echo aGVsbG8= | base64 -d 2>/dev/null || echo aGVsbG8= | base64 -D
echo
readlink -f f 2>/dev/null || greadlink -f f
(md5sum f 2>/dev/null || md5 -q f) | cut -c1-8
