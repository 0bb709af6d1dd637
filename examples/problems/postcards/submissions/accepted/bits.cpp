#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

int main() {
    std::string role;
    uint64_t number;
    std::cin >> role >> number;
    if (role == "write") {
        std::vector<int> cards;
        for (int bit = 0; bit < 50; bit++) {
            if (number >> bit & 1) cards.push_back(bit + 1);
        }
        std::cout << cards.size() << '\n';
        for (int card : cards) std::cout << card << ' ';
        std::cout << '\n';
    } else {
        uint64_t total = 0, card;
        while (std::cin >> card) total |= uint64_t{1} << (card - 1);
        std::cout << total << '\n';
    }
}
