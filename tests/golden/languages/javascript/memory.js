const blocks = [];
while (true) blocks.push(new Array(1 << 17).fill(blocks.length + 0.5));
