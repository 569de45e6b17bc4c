# A file name of 100000 bytes.
#
# expect: denied ENAMETOOLONG EINVAL
from attempt import attempt

attempt("a name of 100000 bytes", lambda: open("/workspace/" + "n" * 100000, "w"))
