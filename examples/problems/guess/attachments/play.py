"""Play the judge for a program of yours: python3 play.py NUMBER COMMAND [ARGUMENTS…]"""

import subprocess
import sys

number, command = int(sys.argv[1]), sys.argv[2:]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
    assert program.stdin and program.stdout
    for count, line in enumerate(program.stdout, start=1):
        guess = int(line)
        answer = "correct" if guess == number else "higher" if guess < number else "lower"
        print(f"{count:3}: {guess} {answer}")
        print(answer, file=program.stdin, flush=True)
        if answer == "correct":
            break
print("your program ended with code", program.returncode)
