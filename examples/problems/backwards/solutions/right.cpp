#include <iostream>
#include <string>

int main() {
    std::string word, line;
    while (std::cin >> word) line = line.empty() ? word : word + ' ' + line;
    std::cout << line << '\n';
}
