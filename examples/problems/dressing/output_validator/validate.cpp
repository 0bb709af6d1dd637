// Judges an order of garments: `validate INPUT ANSWER FEEDBACK/ < OUTPUT`; exit code 42 right, 43 wrong. Every other
// exit code is the jury's fault: 1 if an order is found where the answer says that there is none.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

static std::string feedback;

static void note(const char* file, const std::string& message) {
    std::ofstream(feedback + file, std::ios::app) << message << '\n';
}

[[noreturn]] static void reject(const std::string& message) {
    note("judgemessage.txt", message);
    exit(43);
}

[[noreturn]] static void fail(const std::string& message) {
    std::cerr << message << '\n';
    exit(1);
}

static size_t garment(const std::string& word, size_t n) {
    const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    const size_t value = digits && word.size() <= 6 ? static_cast<size_t>(atoi(word.c_str())) : 0;
    if (value < 1 || value > n) reject("'" + word.substr(0, 20) + "' is no garment");
    return value;
}

int main(int argc, char** argv) {
    if (argc < 4) fail("usage: validate INPUT ANSWER FEEDBACK/");
    std::ifstream input(argv[1]), answer(argv[2]);
    feedback = argv[3];
    size_t n = 0, m = 0;
    if (!(input >> n >> m)) fail("the input has no n and m");
    std::vector<std::pair<size_t, size_t>> pairs(m);
    for (auto& [before, after] : pairs) input >> before >> after;
    std::string verdict, word;
    if (!input || !(answer >> verdict)) fail("the input or the answer is cut short");

    if (!(std::cin >> word)) reject("nothing is printed");
    if (word == "impossible") {
        if (std::cin >> word) reject("something follows impossible");
        if (verdict != "impossible") reject("says impossible, and there is an order");
        return 42;
    }
    std::vector<size_t> place(n + 1, 0);
    for (size_t seen = 1; seen <= n; seen++) {
        if (seen > 1 && !(std::cin >> word)) reject("only " + std::to_string(seen - 1) + " garments are put on");
        size_t& spot = place[garment(word, n)];
        if (spot) reject("garment " + word + " is put on twice");
        spot = seen;
    }
    if (std::cin >> word) reject("more is printed than n garments");
    for (const auto& [before, after] : pairs) {
        if (place[before] > place[after]) {
            note("teammessage.txt", "Some garment is put on too early.");
            reject("garment " + std::to_string(after) + " is put on before " + std::to_string(before));
        }
    }
    if (verdict == "impossible") fail("the answer says impossible, and this order is right");
    return 42;
}
