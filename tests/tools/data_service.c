/*
 * data_service.c - the host service of the tests as a program: `data_service SOCKET` (a path that is not
 * there yet). It serves until it is killed; tests/lib/data_service.h lists its methods.
 */
#include "tests/lib/data_service.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fputs("usage: data_service SOCKET\n", stderr);
        return EXIT_FAILURE;
    }
    int listener = data_service_listen(argv[1]);
    if (listener < 0) {
        perror("data_service");
        return EXIT_FAILURE;
    }
    data_service_serve(listener);
}
