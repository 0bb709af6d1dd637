/* Prints one number that never ends. */
#include <stdio.h>

int main(void) {
    for (;;) putchar('1');
}
