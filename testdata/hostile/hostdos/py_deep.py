# Three thousand folders in each other.
#
# expect: denied ENAMETOOLONG EDQUOT ENOSPC EMLINK EINVAL RecursionError
import os

from attempt import attempt


def deep():
    path = "/workspace"
    for _ in range(3000):
        path += "/d"
        os.mkdir(path)


attempt("makedirs of 3000 folders", lambda: os.makedirs("/workspace/" + "/".join(["e"] * 3000)))
attempt("3000 mkdirs", deep)
