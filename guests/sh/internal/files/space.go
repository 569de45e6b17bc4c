package files

// space is what a file system holds, in bytes.
type space struct{ total, free, available uint64 }

// diskSpace is the room where name is. WASI does not say; the figures are fixed, so that scripts which ask whether there is enough
// room go on: a quota that the host sets answers with an error when it is reached.
func diskSpace(string) space {
	const gib = 1 << 30
	return space{total: 16 * gib, free: 8 * gib, available: 8 * gib}
}
