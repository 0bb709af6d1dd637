// Checks an input. Called as testlib's validators are: the input on standard input, 0 valid, 3 not.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

[[noreturn]] static void refuse(const char* message) {
    fprintf(stderr, "FAIL %s\n", message);
    exit(3);
}

int main() {
    const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    if (text.size() < 2 || text.back() != '\n') refuse("the last line does not end");
    const std::string number = text.substr(0, text.size() - 1);
    if (number.find_first_not_of("0123456789") != std::string::npos) refuse("not one number alone on its line");
    if (number[0] == '0' || number.size() > 4 || atoi(number.c_str()) > 1000) refuse("n is not from 1 to 1000");
}
