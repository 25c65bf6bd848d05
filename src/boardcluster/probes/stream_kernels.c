/* The four kernels that J. D. McCalpin defined for STREAM, each timed so many times.
 *
 *     copy c = a, scale b = s * c, add c = a + b, triad a = b + s * c
 *
 * This is code of our own, not STREAM: what it prints are not "STREAM benchmark results" in the
 * sense of that program's licence. Bytes are counted as STREAM counts them: 16 per element for copy
 * and scale, 24 for add and triad. The first pass is not counted, and the best of the others is.
 * Build with -DELEMENTS=... and -DTIMES=...; OMP_NUM_THREADS says how many threads.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#if TIMES < 2
#error "TIMES must be at least 2: the first pass is not counted"
#endif

static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
static const double factor = 3.0;
static const char *const names[4] = {"copy", "scale", "add", "triad"};
static const double words[4] = {2, 2, 3, 3};

static double wrong(const double *row, double expected)
{
    double most = 0;
    for (long j = 0; j < ELEMENTS; j++)
        most = fmax(most, fabs(row[j] / expected - 1));
    return most;
}

int main(void)
{
    double best[4] = {1e300, 1e300, 1e300, 1e300};
    double x = 1, y = 2, z = 0;
    int threads = 0;

#pragma omp parallel
#pragma omp atomic
    threads++;

#pragma omp parallel for
    for (long j = 0; j < ELEMENTS; j++) {
        a[j] = 1;
        b[j] = 2;
        c[j] = 0;
    }
    for (int k = 0; k < TIMES; k++) {
        double at[5];
        at[0] = omp_get_wtime();
#pragma omp parallel for
        for (long j = 0; j < ELEMENTS; j++)
            c[j] = a[j];
        at[1] = omp_get_wtime();
#pragma omp parallel for
        for (long j = 0; j < ELEMENTS; j++)
            b[j] = factor * c[j];
        at[2] = omp_get_wtime();
#pragma omp parallel for
        for (long j = 0; j < ELEMENTS; j++)
            c[j] = a[j] + b[j];
        at[3] = omp_get_wtime();
#pragma omp parallel for
        for (long j = 0; j < ELEMENTS; j++)
            a[j] = b[j] + factor * c[j];
        at[4] = omp_get_wtime();
        for (int i = 0; k > 0 && i < 4; i++)
            best[i] = fmin(best[i], at[i + 1] - at[i]);
        z = x;
        y = factor * z;
        z = x + y;
        x = y + factor * z;
    }
    printf("threads %d elements %ld times %d\n", threads, (long)ELEMENTS, TIMES);
    for (int i = 0; i < 4; i++)
        printf("%s %.0f bytes per second, best of %d in %.9f s\n", names[i],
               words[i] * sizeof(double) * ELEMENTS / best[i], TIMES - 1, best[i]);
    if (wrong(a, x) > 1e-12 || wrong(b, y) > 1e-12 || wrong(c, z) > 1e-12) {
        printf("the arrays are wrong\n");
        return EXIT_FAILURE;
    }
    printf("the arrays are right\n");
    return EXIT_SUCCESS;
}
