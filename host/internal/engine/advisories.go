package engine

import (
	"slices"
	"strconv"
	"strings"
)

// Status says what an advisory means for exthost.
type Status string

const (
	Affected     Status = "affected"      // it can be reached; the second wall is what stands behind it
	Mitigated    Status = "mitigated"     // a setting or a check of exthost closes it
	NotReachable Status = "not reachable" // the code in question is not used
)

// Severities of advisories.
const (
	Low      = "low"
	Medium   = "medium"
	High     = "high"
	Critical = "critical"
)

// Advisory is one published weakness of an engine, or a defect that should have been one.
type Advisory struct {
	Engine   string   `json:"engine"`
	ID       string   `json:"id"`            // GHSA-..., or the number
	CVE      string   `json:"cve,omitempty"` // if there is one
	Title    string   `json:"title"`
	Severity string   `json:"severity"`
	Since    string   `json:"since,omitempty"` // first version that has it; "": all
	Fixed    []string `json:"fixed,omitempty"` // first version with the fix, of each branch that got it
	Status   Status   `json:"status"`          // for a version that has it
	Why      string   `json:"why"`
}

// Reasons that many advisories share.
const (
	noComponents = "components are not enabled; package module refuses them"
	noWASI       = "the engine's own WASI is not used; package wasiabi has its own"
	noGC         = "garbage collection, exceptions and externref are off, and package module refuses their types and instructions"
	noWinch      = "the compiler is always Cranelift"
	noSIMD       = "SIMD is off, and package module refuses its instructions"
	noPool       = "the pooling allocator is not used, and a worker has one instance at a time"
	noAsync      = "async calls are not used"
	noAPI        = "the Go binding does not use this function"
	noARM        = "wasmtime is not built for arm64"
)

// advisories has every one of 2026, up to 2026-11-30, by date.
var advisories = []Advisory{
	{Wasmtime, "GHSA-vc8c-j3xm-xj73", "CVE-2026-24116", "f64.copysign of a load reads 16 bytes instead of 8 on x86-64", Medium,
		"29.0.0", []string{"36.0.5", "40.0.3", "41.0.1"}, Mitigated,
		"memories keep their guard pages and traps their signals: the wide load traps there, and what it reads is not used"},
	{Wasmtime, "GHSA-852m-cvvp-9p4w", "CVE-2026-27204", "guests exhaust host resources through WASI", Medium,
		"", []string{"24.0.6", "36.0.6", "40.0.4", "41.0.4"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-243v-98vx-264h", "CVE-2026-27572", "panic on too many wasi:http fields", Medium,
		"", []string{"24.0.6", "36.0.6", "40.0.4", "41.0.4"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-xjhv-v822-pf94", "CVE-2026-27195", "panic when a call_async future is dropped", Medium,
		"39.0.0", []string{"40.0.4", "41.0.4"}, NotReachable, noAsync},
	{Wasmtime, "GHSA-m758-wjhj-p3jq", "CVE-2026-34943", "panic when a component's flags value is lifted", Medium,
		"", []string{"24.0.7", "36.0.7", "42.0.2", "43.0.1"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-m9w2-8782-2946", "CVE-2026-34945", "host data leaks with 64-bit tables and Winch", Low,
		"", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noWinch},
	{Wasmtime, "GHSA-qqfj-4vcm-26hv", "CVE-2026-34944", "f64x2.splat loads outside of the memory on x86-64", Medium,
		"", []string{"24.0.7", "36.0.7", "42.0.2", "43.0.1"}, NotReachable, noSIMD},
	{Wasmtime, "GHSA-6wgr-89rj-399p", "CVE-2026-34988", "data leaks between instances of the pooling allocator", Low,
		"", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noPool},
	{Wasmtime, "GHSA-q49f-xg75-m9xw", "CVE-2026-34946", "host panic on table.fill with Winch", Medium,
		"", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noWinch},
	{Wasmtime, "GHSA-hfr4-7c6c-48w2", "CVE-2026-34983", "use after free once a Linker was cloned", Low,
		"43.0.0", []string{"43.0.1"}, NotReachable, noAPI},
	{Wasmtime, "GHSA-394w-hwhg-8vgm", "CVE-2026-35195", "write outside of the memory while component strings are transcoded", Medium,
		"", []string{"24.0.7", "36.0.7", "42.0.2", "43.0.1"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-jxhv-7h78-9775", "CVE-2026-34942", "panic on misaligned UTF-16 component strings", Medium,
		"", []string{"24.0.7", "36.0.7", "42.0.2", "43.0.1"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-hx6p-xpx3-jvvv", "CVE-2026-34941", "heap read out of bounds while component strings are transcoded", Medium,
		"", []string{"24.0.7", "36.0.7", "42.0.2", "43.0.1"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-f984-pcp8-v2p7", "CVE-2026-35186", "table.grow's result is masked wrongly by Winch", Medium,
		"", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noWinch},
	{Wasmtime, "GHSA-xx5w-cvp6-jv83", "CVE-2026-34987", "memory accesses escape the sandbox with Winch", Critical,
		"25.0.0", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noWinch},
	{Wasmtime, "GHSA-jhxm-h53p-jm7w", "CVE-2026-34971", "miscompiled memory accesses escape the sandbox on arm64", Critical,
		"", []string{"36.0.7", "42.0.2", "43.0.1"}, NotReachable, noARM},
	{Wasmtime, "GHSA-p8xm-42r7-89xg", "CVE-2026-44216", "panic on a table larger than the address space", Medium,
		"30.0.0", []string{"36.0.8", "43.0.2", "44.0.1"}, Mitigated, "package module caps tables at 100,000 elements"},
	{Wasmtime, "GHSA-2r75-cxrj-cmph", "CVE-2026-47261", "WASI path_open truncates files of a read-only folder", High,
		"", []string{"24.0.9", "36.0.10", "44.0.2", "45.0.0"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-3p27-qvp9-27qf", "CVE-2026-54786", "WASI fd_renumber leaks", Low,
		"", []string{"24.0.10", "36.0.11", "44.0.3", "45.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-4ch3-9j33-3pmj", "CVE-2026-58494", "WASI hard links and renames bypass the target's permissions", Medium,
		"", []string{"24.0.11", "36.0.12", "45.0.3", "46.0.1"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-hgjw-h833-99q9", "", "stores mix up type indices between engines", Low,
		"", []string{"24.0.12", "36.0.13", "46.0.2", "47.0.3"}, NotReachable, "a worker has one engine"},
	{Wasmtime, "GHSA-2hw9-mc66-jc2q", "CVE-2026-104855", "preemption and traps in bulk operations break internal state", Low,
		"46.0.0", []string{"46.0.2", "47.0.3"}, NotReachable, "no epochs or fuel, and a store is dropped after its first call that trapped"},
	{Wasmtime, "GHSA-x84v-gj2h-g759", "", "guests choose the size of a host allocation through WASI 0.3 streams", Medium,
		"46.0.0", []string{"46.0.3", "47.0.4"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-vqjp-4c8c-hfgg", "", "trailing slashes lead out of a WASI folder", High,
		"", []string{"24.0.13", "36.0.14", "46.0.3", "47.0.4"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-j366-h8gg-77pm", "", "WASI preview 0 poll_oneoff circumvents fuel", Low,
		"", []string{"36.0.17", "48.0.4", "49.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-gqmc-89g8-p25r", "", "host memory grows when guests have no standard streams", Medium,
		"", []string{"36.0.17", "48.0.4", "49.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-96f6-r43r-8c24", "", "fd_readdir copies uninitialised padding to the guest", Medium,
		"", []string{"36.0.17", "48.0.4", "49.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-mr2v-56j5-cmfc", "", "panic on a timestamp before the epoch with WASI 0.3", Medium,
		"46.0.0", []string{"48.0.4", "49.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-32h6-97mm-8q3c", "CVE-2026-115384", "a component's async callback overflows the native stack", Critical,
		"39.0.0", []string{"48.0.4", "49.0.2"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-cfhf-m2cr-62wj", "", "mistyped tag imports corrupt the GC heap", High,
		"", []string{"48.0.4", "49.0.2"}, NotReachable, noGC},
	{Wasmtime, "GHSA-w4qr-p94g-mjhv", "", "wasi:http panics on a timeout of zero", Medium,
		"", []string{"48.0.4", "49.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-hw8m-q44c-ggrf", "", "GC values live across try_call may not be rooted", High,
		"", []string{"48.0.4", "49.0.2"}, NotReachable, noGC},
	{Wasmtime, "releases of 2026-10-14", "", "36.0.18, 48.0.6 and 49.0.3 fix advisories, most of them in the component model, that this table has not seen", High,
		"", []string{"36.0.18", "48.0.6", "49.0.3"}, Affected, "not known; counted as open until it is"},
	{Wasmtime, "GHSA-r8xh-cgf7-392j", "", "wasi:http guests add conflicting content lengths", Medium,
		"", []string{"36.0.19", "48.0.7", "49.0.4"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-mghf-wjfp-p5xm", "CVE-2026-115893", "a large br_table jumps to a wrong target on arm64", Critical,
		"", []string{"36.0.19", "48.0.7", "49.0.4"}, NotReachable, noARM},
	{Wasmtime, "GHSA-897f-g5gm-fmxm", "CVE-2026-115889", "Cranelift miscompiles functions of over 2^24 values", Critical,
		"", []string{"36.0.19", "43.0.0"}, Affected,
		"package module refuses functions that could come near that many values, by an estimate that nothing proves; so the second wall is required"},
	{Wasmtime, "GHSA-hmmr-87qq-258j", "", "wasi-sockets sends datagrams to denied addresses", Medium,
		"", []string{"49.0.5", "50.0.1"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-qw58-7h65-crq2", "", "host-made struct types are confused between engines", Medium,
		"", []string{"49.0.5", "50.0.1"}, NotReachable, noGC},
	{Wasmtime, "GHSA-3982-jqvv-277m", "", "panic of typed functions with i31 or nullref arguments", Low,
		"", []string{"49.0.5", "50.0.1"}, NotReachable, noGC},
	{Wasmtime, "GHSA-6fr9-xmw9-5352", "", "memory grows while borrowed resources pass between components", Medium,
		"", []string{"36.0.20", "49.0.5", "50.0.1"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-h4wp-g4x3-7398", "", "wasi-http content length does not match the body", Medium,
		"", []string{"36.0.20", "49.0.5", "50.0.1"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-5m8g-xhq4-4h93", "", "empty writes to a WASI stream grow host memory", Medium,
		"", []string{"50.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-43j2-gcp4-m22g", "", "stale GC heap pointer in compiled code aborts the host", Medium,
		"", []string{"50.0.2"}, NotReachable, noGC},
	{Wasmtime, "GHSA-xrvr-8678-5wp8", "", "panic when a component cancels a copy on the wrong end", Medium,
		"", []string{"50.0.2"}, NotReachable, noComponents},
	{Wasmtime, "GHSA-hj27-mpw9-ff4c", "", "panic in Caller::get_module_export", Low,
		"", []string{"50.0.2"}, NotReachable, noAPI},
	{Wasmtime, "GHSA-wvgq-g5hf-6gm6", "", "abort on a GC heap reservation that is no multiple of the page size", Low,
		"", []string{"50.0.2"}, NotReachable, noGC},
	{Wasmtime, "GHSA-rc4p-x33f-vpr2", "", "abort in builds without the gc feature", Low,
		"47.0.0", []string{"48.0.9", "49.0.6", "50.0.2"}, NotReachable, "the Go binding's library has the feature"},
	{Wasmtime, "GHSA-2674-w29h-wqvj", "", "abort in builds without the threads feature", Low,
		"", []string{"50.0.2"}, NotReachable, "the Go binding's library has the feature"},
	{Wasmtime, "GHSA-f8mm-ggr3-89wh", "", "empty HTTP/2 bodies grow host memory", Medium,
		"", []string{"50.0.2"}, NotReachable, noWASI},
	{Wasmtime, "GHSA-f2pq-268w-886c", "", "drive prefixes lead out of a WASI folder on Windows", High,
		"", []string{"49.0.7", "50.0.3"}, NotReachable, noWASI},
	{Wasmtime, "wasmtime #12333", "", "stack overflow of the compiler in x86-64 cmp emission", Low,
		"", []string{"36.0.4", "39.0.2", "40.0.2"}, Mitigated, "modules are compiled in a worker of their own, which may crash"},

	// wazero has published no advisory in 2026; these are defects of its issue tracker that would deserve one.
	{Wazero, "wazero #2321", "", "directory mounts follow links out of the folder", High,
		"", nil, NotReachable, noWASI},
	{Wazero, "wazero #2466", "", "guests without loops cannot be interrupted and stop the host's garbage collector", Medium,
		"", nil, Mitigated, "guests run in worker processes that are killed"},
	{Wazero, "wazero #2516", "", "the compiler miscompiles some arithmetic: guests compute wrong results", Medium,
		"1.7.0", nil, Affected, "open; no way out of the memory is known, and the second wall stands behind it"},
}

// Advisories lists the advisories of an engine, whatever its version.
func Advisories(name string) []Advisory {
	var out []Advisory
	for _, a := range advisories {
		if a.Engine == name {
			out = append(out, a)
		}
	}
	return slices.Clone(out)
}

// Open lists the advisories that the version in this binary is affected by.
func Open(name string) []Advisory {
	var out []Advisory
	for _, a := range Advisories(name) {
		if a.Status == Affected && a.Has(Version(name)) {
			out = append(out, a)
		}
	}
	return out
}

// RequiresWalls reports whether an engine must not run without Landlock and seccomp, whoever asks: a critical
// advisory is open.
func RequiresWalls(name string) bool {
	return slices.ContainsFunc(Open(name), func(a Advisory) bool { return a.Severity == Critical })
}

// Has reports whether a version of the engine has the defect. An unknown version has.
func (a Advisory) Has(version string) bool {
	v, ok := parseVersion(version)
	if !ok {
		return true
	}
	if since, ok := parseVersion(a.Since); ok && slices.Compare(v[:], since[:]) < 0 {
		return false
	}
	newest := [3]int{}
	for _, f := range a.Fixed {
		f, ok := parseVersion(f)
		if !ok {
			continue
		}
		if v[0] == f[0] && slices.Compare(v[:], f[:]) >= 0 {
			return false
		}
		if slices.Compare(f[:], newest[:]) > 0 {
			newest = f
		}
	}
	return len(a.Fixed) == 0 || slices.Compare(v[:], newest[:]) < 0
}

// parseVersion reads "major.minor.patch"; what follows a "-" or "+" does not count.
func parseVersion(s string) (v [3]int, ok bool) {
	s, _, _ = strings.Cut(s, "+")
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return v, false
		}
		v[i] = n
	}
	return v, true
}
