// Ada finds her cards by counting up from nothing.
#include <cstdint>
#include <iostream>
#include <string>

int main() {
    std::string role;
    uint64_t number;
    std::cin >> role >> number;
    if (role == "write") {
        uint64_t set = 0;
        while (set < number) {
            set++;
            asm volatile("" : "+r"(set));  // or the compiler would do the counting in one step
        }
        std::cout << __builtin_popcountll(set) << '\n';
        for (int bit = 0; bit < 50; bit++) {
            if (set >> bit & 1) std::cout << bit + 1 << ' ';
        }
        std::cout << '\n';
    } else {
        uint64_t total = 0, card;
        while (std::cin >> card) total |= uint64_t{1} << (card - 1);
        std::cout << total << '\n';
    }
}
