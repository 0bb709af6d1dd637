#include <iostream>
#include <string>

int main() {
    int low = 1, high = 1'000'000;
    std::string answer;
    do {
        const int guess = (low + high) / 2;
        std::cout << guess << std::endl;
        if (!(std::cin >> answer)) return 1;
        (answer == "higher" ? low : high) = answer == "higher" ? guess + 1 : guess - 1;
    } while (answer != "correct");
}
