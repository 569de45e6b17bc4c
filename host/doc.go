// Package host runs untrusted extensions in sandboxed worker processes. It is the embedding API of exthost.
//
// An extension is a folder (an agent skill with its scripts) or one file. [Host.Open] binds it to a policy, and
// [Extension.Run] runs one of its scripts as a WebAssembly guest that has what the policy grants and nothing else.
//
//	func main() {
//		host.WorkerMain() // first thing: a worker process is this same program
//		h, err := host.New(host.Config{})
//		...
//		e, err := h.Open(ctx, "./pdf-report", grant, host.Bindings{Workspace: dir})
//		...
//		report, err := e.Run(ctx, host.Job{Script: "scripts/report.py", Args: []string{"--in", "q3.csv"}, Stdout: os.Stdout})
//	}
//
// Policy decides, host mints, ABI holds: package policy answers questions, this package alone turns an answer into an
// open folder or a clock, and package wasiabi uses what it was handed.
//
// # Isolation
//
// Guests run in worker processes that this package starts from the program's own executable. A worker has an empty
// environment, no terminal and no descriptor but those of its run; on Linux it is confined by Landlock and a seccomp
// allowlist, which a self-test proves before it reads the first byte of an extension. It serves one extension under one
// policy for its whole life, one guest at a time. What a worker says is a claim: the host decides again from its own
// copy of the policy, and marks it as reported.
//
// What runs is a private copy of the extension, made while its digest is computed. Modules are compiled in workers of
// their own that never run a guest, and compiled code is kept in an authenticated cache.
//
// # Limits
//
// Time, memory, output, open files, files and disk are bounded by the policy's limits; the host kills a worker at the
// deadline, and within 100 ms of a cancelled context. Compiling a module, once, does not count as time of the run; it has
// a deadline of its own: twice the run's, at least 30 s and at most 2 minutes.
//
// # What a guest sees
//
// The extension at /skill, read-only; HOME at /home/guest and a /tmp, both empty and gone after the run; what the policy
// grants under files; a runtime's library at /usr/local. It starts in /workspace if that is granted, else in /skill. Its
// environment is HOME, PATH (/usr/local/bin), PWD, TMPDIR, USER (guest) and what the policy passes or sets.
//
// # What this does not protect
//
// A write root on a source tree means code of yours that others wrote sooner or later: use an overlay. A guest that breaks
// out of its engine can still learn which files exist on the host, since Landlock does not cover stat, and can read what
// hide patterns hide from guests, since Landlock knows folders and not patterns. Clocks are real. There are no workers,
// and so no runs, on systems other than Linux yet.
package host
