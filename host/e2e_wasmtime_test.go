//go:build cgo && amd64 && !exthost_nowasmtime

package host_test

// wantWasmtime: this build must have wasmtime in it. A test that only ran what it found would pass without it.
const wantWasmtime = true
