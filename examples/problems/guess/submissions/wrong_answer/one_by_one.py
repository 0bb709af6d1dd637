# Asks for every number in turn, and uses up its guesses.
guess = 0
answer = ""
while answer != "correct":
    guess += 1
    print(guess, flush=True)
    answer = input()
