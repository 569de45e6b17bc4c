//go:build !(cgo && !exthost_nowasmtime && amd64 && (linux || darwin))

package engine

const hasWasmtime = false
