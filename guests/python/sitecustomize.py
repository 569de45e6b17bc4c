"""Start code of exthost's Python, run by site before the script.

WASI has no working folder: a program starts in "/". The host names the folder
that the script is to start in as PWD.
"""

import os

try:
    os.chdir(os.environ["PWD"])
except (KeyError, OSError):
    pass
