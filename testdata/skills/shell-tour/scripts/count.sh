#!/usr/bin/env bash
# Reads what it is given.
IFS= read -r first
echo "first: $first"
echo "more lines: $(wc -l)"
exit 4
