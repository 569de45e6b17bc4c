//go:build !cgo || !amd64 || exthost_nowasmtime

package host_test

const wantWasmtime = false
