#!/bin/sh
# Runs Go's own standard library tests, built for wasip1, through `exthost wasi` on every engine of the binary.
# usage: testdata/gostd/run.sh [-engine wasmtime,wazero] [-exthost FILE] [-run REGEXP] [PACKAGE...]
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
go build -o "$work/gostd" ./testdata/gostd
case " $* " in
*" -exthost "* | *" -exthost="*) "$work/gostd" "$@" ;;
*)
	go build -o "$work/exthost" ./cmd/exthost
	"$work/gostd" -exthost "$work/exthost" "$@"
	;;
esac
