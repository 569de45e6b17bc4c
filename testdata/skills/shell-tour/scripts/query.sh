#!/bin/bash
# jq as skills use it.
set -e
data='{"items":[{"id":1,"name":"a b","tags":["x","y"],"price":1.5},{"id":2,"name":"c","tags":[],"price":null}]}'
jq -r '.items[] | "\(.id)\t\(.name)\t\(.tags | join(","))"' <<<"$data"
jq -c --arg n "c" --argjson min 1 '[.items[] | select(.name == $n and .id > $min) | {id, price: (.price // 0)}]' <<<"$data"
jq -e '.items[0].missing' <<<"$data" || echo "exit $?"
jq -r '.items | map(.price) | @csv' <<<"$data"
jq -rn --arg q 'a b&c' '$q | @uri'
jq -n '[limit(3; range(10))] | add'
printf 'a\nb\n' | jq -R . | jq -sc .
jq '.items[1' <<<"$data" 2>/dev/null || echo "exit $?"
jq -r 'try error("no") catch .' <<<null
jq -S -c . <<<'{"b":1,"a":{"d":2,"c":3}}'
