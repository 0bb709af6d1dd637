package main

func main() {
	var blocks [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		blocks = append(blocks, block)
	}
}
