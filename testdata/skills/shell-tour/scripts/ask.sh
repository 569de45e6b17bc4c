#!/usr/bin/env bash
# Asks, where nobody answers: each question ends at once.
read -r -p "Go on? [y/N] " answer
echo "answer '${answer:-}' $?"
if read -rs -p "Password: " secret; then echo "a secret"; else echo "no secret"; fi
read -t 2 -n 1 -r key || echo "no key"
PS3="Which? "
select file in a b; do echo "chose $file"; break; done
echo "select $?"
sudo -v 2>/dev/null || echo "no sudo"
while read -r line; do echo "line $line"; done
cat
echo "over"
