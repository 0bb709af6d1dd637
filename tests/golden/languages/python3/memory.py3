blocks = []
while True:
    blocks.append(b"x" * (64 << 20) + b"%d" % len(blocks))
