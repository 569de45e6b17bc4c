#!/usr/bin/env bash
set -e
name=world
if [ -n "$name" ]; then
  echo "hello $name"
fi
