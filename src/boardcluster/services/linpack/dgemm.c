/* The rate of double-precision matrix multiplication on so many cores at once.
 *
 *   dgemm PROCESSES ORDER SECONDS
 *
 * Each process multiplies matrices of its own with the BLAS that HPL is linked with, because that
 * build of it has no threads: C := C + A B, ORDER x ORDER. All begin together, and each goes on
 * until SECONDS have passed. One multiplication before that is not counted. What is in C at the end
 * is known: A is all ones and B is i mod 3, so that every number is exact.
 *
 * Prints the kernels that the BLAS chose for this CPU, and a line for each process.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);
char *openblas_get_corename(void);

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void multiply(int n, const double *a, const double *b, double *c)
{
    cblas_dgemm(101, 111, 111, n, n, n, 1.0, a, n, b, n, 1.0, c, n);
}

static int work(int number, int n, double seconds, int ready, int go)
{
    size_t count = (size_t)n * (size_t)n, i;
    double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
    double *c = calloc(count, sizeof *c), begin, took, column = 0.0;
    long times = 0;
    char byte = 0;

    if (!a || !b || !c)
        return 1;
    for (i = 0; i < count; i++) {
        a[i] = 1.0;
        b[i] = (double)(i / (size_t)n % 3);
    }
    for (i = 0; i < (size_t)n; i++)
        column += (double)(i % 3);
    multiply(n, a, b, c);
    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        return 1;
    begin = now();
    do {
        multiply(n, a, b, c);
        times++;
        took = now() - begin;
    } while (took < seconds);
    for (i = 0; i < count; i++)
        if (c[i] != column * (double)(times + 1))
            return 2;
    printf("process %d order %d times %ld in %.9f s, every number right\n", number, n, times, took);
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    int processes, n, number, ready[2], go[2], status, failures = 0;
    double seconds;
    char byte = 0;

    if (argc != 4 || (processes = atoi(argv[1])) < 1 || (n = atoi(argv[2])) < 1 ||
        (seconds = atof(argv[3])) <= 0 || pipe(ready) || pipe(go))
        return 2;
    printf("kernels %s processes %d\n", openblas_get_corename(), processes);
    fflush(stdout);
    for (number = 0; number < processes; number++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            close(ready[0]);
            close(go[1]);
            _exit(work(number, n, seconds, ready[1], go[0]));
        }
    }
    close(ready[1]); /* so that a process that ended early is an end of file, and no endless wait */
    close(go[0]);
    for (number = 0; number < processes; number++)
        if (read(ready[0], &byte, 1) != 1)
            break;
    if (number == processes)
        for (number = 0; number < processes; number++)
            if (write(go[1], &byte, 1) != 1)
                return 1;
    close(go[1]);
    while (wait(&status) > 0)
        failures += status != 0;
    return failures ? 1 : 0;
}
