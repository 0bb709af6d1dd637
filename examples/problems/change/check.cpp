// Judges a payment: `check INPUT OUTPUT ANSWER`, as testlib's checkers are called. Exit code 0 for a shortest payment, 7
// with "points 1" for one that is longer than it need be, 1 for a wrong one, 2 for what is no payment, 3 for the jury's
// own mistakes.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

[[noreturn]] static void quit(int code, const std::string& message) {
    fprintf(stderr, "%s\n", message.c_str());
    exit(code);
}

int main(int argc, char** argv) {
    if (argc < 4) quit(3, "FAIL usage: check INPUT OUTPUT ANSWER");
    std::ifstream input(argv[1]), output(argv[2]), answer(argv[3]);
    long long amount, kinds, coin, best, count, paid = 0;
    if (!(input >> amount >> kinds) || !(answer >> best)) quit(3, "FAIL no amount or no answer");
    std::set<long long> known;
    while (kinds-- > 0 && input >> coin) known.insert(coin);
    if (!(output >> count)) quit(2, "wrong output format no number of coins");
    for (long long i = 0; i < count; i++) {
        if (!(output >> coin)) quit(2, "wrong output format fewer coins than announced");
        if (!known.count(coin)) quit(1, "wrong answer there is no coin of " + std::to_string(coin));
        paid += coin;
    }
    std::string more;
    if (output >> more) quit(2, "wrong output format more coins than announced");
    if (paid != amount) quit(1, "wrong answer " + std::to_string(paid) + " is paid, not " + std::to_string(amount));
    if (count < best) quit(3, "FAIL the jury pays with more coins");
    if (count > best) quit(7, "points 1");
    quit(0, "ok " + std::to_string(count) + " coins");
}
