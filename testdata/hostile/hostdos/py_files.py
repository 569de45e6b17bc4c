# Files made without end.
#
# expect: denied EDQUOT ENOSPC
from attempt import attempt


def fill():
    for n in range(200_000):
        open("/workspace/f%d" % n, "w").close()


attempt("200000 files", fill)
