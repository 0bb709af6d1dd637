# Does not know what to do when it is run again.
word, number = input().split()
WRITE = {"write": lambda x: [bit + 1 for bit in range(50) if x >> bit & 1]}
chosen = WRITE[word](int(number))
print(len(chosen), *chosen)
