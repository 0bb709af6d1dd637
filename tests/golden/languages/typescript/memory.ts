const blocks: number[][] = [];
while (true) blocks.push(new Array<number>(1 << 17).fill(blocks.length + 0.5));
