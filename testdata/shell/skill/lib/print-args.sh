#!/usr/bin/env bash
printf '<%s>' "$@"
echo
exit $#
