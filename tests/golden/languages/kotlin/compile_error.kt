fun main() {
    println(undeclared)
}
