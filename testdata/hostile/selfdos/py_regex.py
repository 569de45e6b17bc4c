# A pattern that needs more steps than there are atoms.
#
# time: 3s
# expect: limit time
import re

re.match(r"(a+)+$", "a" * 60 + "b")
