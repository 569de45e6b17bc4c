//go:build wasip1

// Files that steer an agent or make a tool of the host run code when it next starts.
//
// expect: denied EPERM ENOTCAPABLE EACCES
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("agent_files", func() {
		for _, path := range []string{"AGENTS.md", "CLAUDE.md", ".mcp.json", ".envrc", ".npmrc", "conftest.py", "sitecustomize.py", "evil.pth",
			".vscode", ".claude", ".cursor", ".husky", ".bashrc", ".profile", ".zshrc", "agents.MD", "sub/AGENTS.md", "sub/.mcp.json"} {
			Errnof(file("workspace/"+path), "create %s", path)
			if Lstat("workspace/plain.txt") != 0 {
				Need(file("workspace/plain.txt"), "create plain.txt")
			}
			Errnof(Rename("workspace/plain.txt", "workspace/"+path), "rename to %s", path)
			Errnof(Link("workspace/plain.txt", "workspace/"+path), "hard link to %s", path)
			Errnof(Symlink("plain.txt", "workspace/"+path), "link named %s", path)
		}
		Need(Mkdir("workspace/.github"), "mkdir .github")
		Errnof(Mkdir("workspace/.github/workflows"), "mkdir .github/workflows")
	})
}
