# A file that grows until the disk is full.
#
# expect: denied EDQUOT ENOSPC
from attempt import attempt


def fill():
    with open("/workspace/big", "wb", buffering=0) as f:
        for _ in range(4096):
            f.write(b"0" * (1 << 20))


attempt("4 GiB in one file", fill)
