//go:build !linux

package wazero

import "context"

// withAllocator leaves linear memory on Go's heap.
func withAllocator(ctx context.Context) context.Context { return ctx }
