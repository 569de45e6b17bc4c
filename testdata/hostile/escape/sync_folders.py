# A script that "keeps two folders equal" and tries every way from one root into another or out of both.
#
# denial: write /canary-out
# denial: write /workspace/up2
# denial: write /workspace/h
# denial: write /workspace/hard.txt
# denial: write /skill/SKILL.md
# denial: write /ro/file.txt
# denial: read /proc/self/root/etc/hostname
# denial: write /workspace/pr
# expect: denied ENOTCAPABLE EPERM EACCES ENOENT EROFS EXDEV ENOTDIR EEXIST ELOOP
import os
import shutil

from attempt import append, attempt, read, write


def link_then(target, link, then):
    os.symlink(target, link)
    then()


attempt("write outside by dotdot", lambda: write("/workspace/../canary-out"))
attempt("write outside by many dotdots", lambda: write("/workspace/../../../../tmp2/canary-out"))
attempt("link up, then write", lambda: link_then("..", "/workspace/up2", lambda: write("/workspace/up2/canary-link")))
attempt("link to a file of the host, then read",
        lambda: link_then("../../../../../../etc/hostname", "/workspace/h", lambda: read("/workspace/h")))
attempt("the link with a slash", lambda: read("/workspace/h/"))
attempt("list through a link up", lambda: os.listdir("/workspace/up2/"))
attempt("list through a planted link up", lambda: os.listdir("/workspace/up/"))
attempt("read through a planted link", lambda: read("/workspace/out"))
attempt("walk up a planted folder link", lambda: read("/workspace/dirout/secret.txt"))
attempt("rename across roots", lambda: os.rename("/skill/SKILL.md", "/workspace/SKILL.moved"))
attempt("hard link across roots", lambda: os.link("/skill/SKILL.md", "/workspace/hard2"))
attempt("write to what was linked", lambda: append("/workspace/hard.txt"))
attempt("truncate a file that may be read", lambda: write("/skill/SKILL.md", ""))
attempt("truncate it by os.truncate", lambda: os.truncate("/skill/SKILL.md", 0))
attempt("truncate it while opening to read", lambda: os.open("/skill/SKILL.md", os.O_RDONLY | os.O_TRUNC))
attempt("truncate a file of a read root while opening to read", lambda: os.open("/ro/file.txt", os.O_RDONLY | os.O_TRUNC))
attempt("touch a file that may be read", lambda: os.utime("/skill/SKILL.md", (1, 1)))
attempt("remove it", lambda: os.remove("/skill/SKILL.md"))
attempt("move it with shutil", lambda: shutil.move("/ro/file.txt", "/ro/moved.txt"))
attempt("remove a tree", lambda: shutil.rmtree("/ro/sub"))
attempt("read /proc through its root link", lambda: read("/proc/self/root/etc/hostname"))
attempt("link to /proc, then read",
        lambda: link_then("/proc/self/root", "/workspace/pr", lambda: read("/workspace/pr/etc/hostname")))
attempt("read through a planted link to /proc", lambda: read("/workspace/procl/etc/hostname"))
