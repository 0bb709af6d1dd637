fun main() {
    var turns = 0L
    while (true) turns++
}
