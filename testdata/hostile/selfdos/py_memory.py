# Memory taken until there is none, and the interpreter's own error for it.
#
# expect: limit memory
x = []
while True:
    x.append(bytearray(1 << 20))
