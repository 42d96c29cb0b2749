/* Prints why a call in differ.c failed: the text must not depend on the source file. */
#include <stdio.h>

#include "ambar_mpi.h"

void report(int rank, const char *what, int status);

void report(int rank, const char *what, int status) {
    printf("rank %d: %s: %d: %s\n", rank, what, status, status ? ambar_last_error() : "");
}
