//go:build wasip1

// Files that make git, or another tool of the host, run code: .git by every spelling, by renaming a prepared folder,
// by link, and a folder that becomes a bare repository piece by piece.
//
// denial: write /workspace/.git/hooks
// denial: write /workspace/.git
// expect: denied EPERM ENOTCAPABLE EACCES ENOENT ENOTDIR EEXIST
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("git_hooks", func() {
		for _, path := range []string{".git/hooks", ".git/hooks/pre-commit", ".GIT/hooks", ".git./hooks", ".git /hooks", ".g\u200cit/hooks",
			"GIT~1/hooks", "sub/.git", ".git::$INDEX_ALLOCATION/hooks", "．git"} {
			Errnof(Mkdir("workspace/"+path), "mkdir %s", path)
		}
		for _, path := range []string{".git/config", ".git/HEAD", ".Git/config", "sub/.git"} {
			_, errno := Open(Root, "workspace/"+path, 0, OCreat, RightWrite, 0)
			Errnof(errno, "write %s", path)
		}
		Errnof(Unlink("workspace/.git/HEAD"), "unlink .git/HEAD")
		Errnof(Rename("workspace/.git", "workspace/gone"), "rename .git away")

		Need(Mkdir("workspace/prepared"), "mkdir")
		Need(Mkdir("workspace/prepared/hooks"), "mkdir")
		fd, errno := Open(Root, "workspace/prepared/hooks/pre-commit", 0, OCreat, RightWrite, 0)
		Need(errno, "create")
		Need(Write(fd, []byte("#!/bin/sh\n")), "write")
		for _, name := range []string{".git", ".GIT", "sub/.git", ".git.", ".husky"} {
			Errnof(Rename("workspace/prepared", "workspace/"+name), "rename a folder to %s", name)
		}
		Errnof(Symlink("prepared", "workspace/sub/.git"), "link named .git")
		Errnof(Rename("workspace/prepared/hooks", "workspace/.git/hooks"), "rename hooks into .git")
		Errnof(Link("workspace/prepared/hooks/pre-commit", "workspace/.git/hooks/pre-commit"), "hard link into .git")

		// Protected names below a folder that moves into place.
		Need(Mkdir("workspace/box"), "mkdir")
		Errnof(Mkdir("workspace/box/.git"), "mkdir box/.git")
	})
}
