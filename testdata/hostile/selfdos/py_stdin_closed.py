# A question to a person who is not there: end of file, at once.
#
# expect: exit 0
try:
    input("Continue? ")
    print("ATTEMPT ALLOWED - an answer came")
except EOFError:
    print("ATTEMPT DENIED EOFError an answer")
