declare function require(name: string): any;
const [a, b]: bigint[] = require("fs").readFileSync(0, "utf8").split(" ").map(BigInt);
console.log(String(a + b));
