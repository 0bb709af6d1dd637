// Checks a row of guests. Called as testlib's checkers are, `check INPUT OUTPUT ANSWER`, and answers as they do: exit
// code 0 right, 1 wrong, 2 not in the format, 3 the jury's own data is at fault; one line on standard error.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

enum Outcome { right = 0, wrong = 1, malformed = 2, jury_fault = 3 };

[[noreturn]] static void quit(Outcome outcome, const std::string& message) {
    static const char* const words[] = {"ok", "wrong answer", "wrong output format", "FAIL"};
    fprintf(stderr, "%s %s\n", words[outcome], message.c_str());
    exit(outcome);
}

// What one side says: a row of guests, or that there is none. `is_jury` below decides whose fault a bad one is.
struct Claim {
    bool possible = false;
    std::vector<int> row;
};

static std::string shown(const std::string& word) {
    return "'" + word.substr(0, 20) + "'";
}

static int guest(const std::string& word, int n, bool is_jury) {
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || word.empty()) quit(is_jury ? jury_fault : malformed, shown(word) + " is no number");
    const int value = word.size() > 6 ? n + 1 : atoi(word.c_str());
    if (value < 1 || value > n) quit(is_jury ? jury_fault : wrong, shown(word) + " is no guest");
    return value;
}

static Claim read_claim(const char* path, int n, bool is_jury) {
    std::ifstream file(path);
    if (!file) quit(is_jury ? jury_fault : malformed, "no output");
    Claim claim;
    std::string word;
    if (!(file >> word)) quit(is_jury ? jury_fault : malformed, "nothing is printed");
    if (word == "NO") {
        if (file >> word) quit(is_jury ? jury_fault : malformed, "something follows NO");
        return claim;
    }
    claim.possible = true;
    std::vector<bool> seated(static_cast<size_t>(n) + 1, false);
    do {
        if (claim.row.size() == static_cast<size_t>(n)) quit(is_jury ? jury_fault : malformed, "more than n numbers");
        const int next = guest(word, n, is_jury);
        if (seated[static_cast<size_t>(next)]) quit(is_jury ? jury_fault : wrong, word + " sits twice");
        if (!claim.row.empty() && abs(claim.row.back() - next) == 1) {
            quit(is_jury ? jury_fault : wrong, std::to_string(claim.row.back()) + " sits beside " + word);
        }
        seated[static_cast<size_t>(next)] = true;
        claim.row.push_back(next);
    } while (file >> word);
    if (claim.row.size() < static_cast<size_t>(n)) quit(is_jury ? jury_fault : malformed, "fewer than n numbers");
    return claim;
}

int main(int argc, char** argv) {
    if (argc < 4) quit(jury_fault, "usage: check INPUT OUTPUT ANSWER");
    std::ifstream input(argv[1]);
    int n = 0;
    if (!(input >> n)) quit(jury_fault, "the input has no n");
    const Claim answer = read_claim(argv[3], n, true);
    const Claim output = read_claim(argv[2], n, false);
    if (answer.possible && !output.possible) quit(wrong, "says NO, and there is a row");
    if (!answer.possible && output.possible) quit(jury_fault, "the jury says NO, and this row is right");
    quit(right, answer.possible ? std::to_string(n) + " guests are seated" : "there is no row");
}
