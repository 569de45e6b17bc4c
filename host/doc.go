// Package host runs untrusted extensions in sandboxed worker processes. It is the embedding API of exthost.
package host
