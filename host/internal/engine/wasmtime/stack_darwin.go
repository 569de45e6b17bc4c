//go:build cgo && !exthost_nowasmtime && amd64

package wasmtime

// maxWasmStack is the native stack that a guest may use, bytes: half of what macOS gives to a thread.
const maxWasmStack = 256 << 10

// stack runs guests on the calling thread: macOS has no default stack size that could be raised.
type stack struct{}

func newStack() *stack { return &stack{} }

func (*stack) do(f func()) error { f(); return nil }

func (*stack) close() {}
