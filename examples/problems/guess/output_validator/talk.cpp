// Plays the judge's side: `talk INPUT ANSWER FEEDBACK/`, the program's guesses on standard input, the answers on
// standard output; exit code 42 found, 43 not found. Words are read with a bound, so a flood cannot fill the memory.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

static const int top = {{top}};
static const int limit = {{limit}};
static std::string feedback;

[[noreturn]] static void end(int code, const std::string& message) {
    std::ofstream(feedback + "judgemessage.txt", std::ios::app) << message << '\n';
    exit(code);
}

static std::string next_word() {
    int letter = getchar();
    while (isspace(letter)) letter = getchar();
    std::string word;
    while (letter != EOF && !isspace(letter) && word.size() < 20) {
        word += static_cast<char>(letter);
        letter = getchar();
    }
    return word;
}

int main(int argc, char** argv) {
    if (argc < 4) return 1;
    feedback = argv[3];
    int secret = 0;
    if (!(std::ifstream(argv[1]) >> secret)) return 1;
    for (int count = 1; count <= limit; count++) {
        const std::string word = next_word();
        if (word.empty()) end(43, "the program stopped after " + std::to_string(count - 1) + " guesses");
        const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
        const int guess = digits && word.size() <= 7 ? atoi(word.c_str()) : 0;
        if (guess < 1 || guess > top) end(43, "guess " + std::to_string(count) + " is '" + word + "'");
        puts(guess == secret ? "correct" : guess < secret ? "higher" : "lower");
        fflush(stdout);
        if (guess == secret) {
            if (!next_word().empty()) end(43, "the program goes on after it found the number");
            end(42, "found after " + std::to_string(count) + " guesses");
        }
    }
    end(43, "not found in " + std::to_string(limit) + " guesses");
}
