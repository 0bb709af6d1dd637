/* Prints guesses for ever and never reads an answer. */
#include <stdio.h>

int main(void) {
    for (int guess = 1;; guess = guess % 1000000 + 1) printf("%d\n", guess);
}
