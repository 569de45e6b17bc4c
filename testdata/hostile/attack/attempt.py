# What the Python attacks share: one printed line for each attempt, as the Go ones print it.
import errno


def attempt(what, call):
    try:
        result = call()
    except OSError as e:
        print("ATTEMPT DENIED", errno.errorcode.get(e.errno, type(e).__name__), what)
        return None
    except BaseException as e:
        print("ATTEMPT DENIED", type(e).__name__, what)
        return None
    print("ATTEMPT ALLOWED -", what)
    return result


def write(path, text="canary"):
    with open(path, "w") as f:
        f.write(text)


def append(path, text="x"):
    with open(path, "a") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()
