# One file opened and kept without end.
#
# expect: denied EMFILE
from attempt import attempt

held = []


def take():
    for _ in range(100_000):
        held.append(open("/skill/SKILL.md"))


attempt("100000 open files", take)
