fun main() {
    throw IllegalStateException()
}
