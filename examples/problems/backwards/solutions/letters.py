# Turns the letters round instead of the words.
print(input()[::-1])
