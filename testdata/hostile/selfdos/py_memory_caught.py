# Memory taken until there is none: the language raises its own error and the script goes on.
#
# expect: exit 0
x = []
try:
    while True:
        x.append(bytearray(1 << 20))
except MemoryError:
    n = len(x)
    x = None
    print("ATTEMPT DENIED MemoryError after", n, "MiB")
