/* The sums of lattice.py, for several pairs of sequences at a time.

   Products of hundreds of probabilities leave the range of a double, so a number is m 2^e with
   1 <= m < 4, or 0; a sum of two needs no logarithm. Probabilities below 2^-1022 count as 0. */

#include <math.h>
#include <stdint.h>

/* As many pairs as one register holds numbers. */
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
typedef double V __attribute__((vector_size(8 * LANES)));
typedef int64_t I __attribute__((vector_size(8 * LANES)));
typedef uint64_t U __attribute__((vector_size(8 * LANES)));

typedef struct {
    V m;
    I e;
} Number;

typedef struct {
    int64_t source, length;              /* the widest of each kind */
    const I *x, *z;                      /* tokens of x_0 and of x_t */
    const V *insert, *matching, *other;  /* by token of x_t: of inserting z, of z = x kept, of x != z */
    const V *replace;                    /* by x and z, where that depends on more; or null */
    const V *stop, *erase;
    const I *source_lengths, *lengths;
} Moves;

static const int64_t NOTHING = -((int64_t)1 << 40); /* the exponent of 0 */

static V chosen(I mask, V a, V b) { return (V)(((I)a & mask) | ((I)b & ~mask)); }
static I chosen_exponent(I mask, I a, I b) { return (a & mask) | (b & ~mask); }

/* 2^d for d <= 0; 0 where that is no normal double. */
static V power(I d) {
    I within = d > -1023;
    return (V)(((d + 1023) << 52) & within);
}

static Number times(Number a, V p) {
    V m = a.m * p;
    I exponent = (I)((U)(I)m >> 52) - 1023;
    I some = exponent > -1023;
    V mantissa = (V)(((I)m & 0xfffffffffffffLL) | 0x3ff0000000000000LL);
    return (Number){(V)((I)mantissa & some),
                    chosen_exponent(some, a.e + exponent, NOTHING - (I){0})};
}

static Number sum(Number a, Number b) {
    I e = chosen_exponent(a.e > b.e, a.e, b.e);
    return (Number){a.m * power(a.e - e) + b.m * power(b.e - e), e};
}

static Number larger(Number a, Number b) {
    I first = (a.e > b.e) | ((a.e == b.e) & (a.m > b.m));
    return (Number){chosen(first, a.m, b.m), chosen_exponent(first, a.e, b.e)};
}

static Number zero(void) { return (Number){{0}, NOTHING - (I){0}}; }

/* The probability that token i of x_0 becomes token j of x_t, both from 0. */
static V replaced(const Moves *w, int64_t i, int64_t j) {
    if (w->replace) return w->replace[i * w->length + j];
    return chosen(w->x[i] == w->z[j], w->matching[j], w->other[j]);
}

/* log m = 2 atanh s with s = (m - 1) / (m + 1), for which eleven terms are exact. */
static V log_of(Number a) {
    V m = a.m, e = __builtin_convertvector(a.e, V);
    for (int halved = 0; halved < 2; halved++) {
        I big = m > M_SQRT2;
        m = chosen(big, 0.5 * m, m);
        e = chosen(big, e + 1.0, e);
    }
    V s = (m - 1.0) / (m + 1.0), square = s * s, series = {0};
    for (int odd = 23; odd > 0; odd -= 2) series = series * square + 1.0 / odd;
    return chosen(a.m == 0.0, -INFINITY - (V){0}, 2.0 * s * series + e * M_LN2);
}

int lanes(void) { return LANES; }

/* The logarithms of `count` numbers, one row after the other instead of side by side. */
void logs(const Number *numbers, int64_t count, int64_t rows, double *to) {
    for (int64_t k = 0; k < count; k++) {
        V each = log_of(numbers[k]);
        for (int64_t row = 0; row < rows; row++) to[row * count + k] = each[row];
    }
}

/* F_A and F_B, in `rows` rows that are used in turns: all of them, or two for the total alone.
   The total is F_B at the end of both sequences. */
void forward(const Moves *w, int64_t rows, int64_t only_largest, Number *a, Number *b,
             Number *total) {
    int64_t width = w->length + 1;
    *total = zero();
    for (int64_t i = 0; i <= w->source; i++) {
        Number *in_a = a + i % rows * width, *in_b = b + i % rows * width;
        const Number *above = b + (i + rows - 1) % rows * width;
        for (int64_t j = 0; j <= w->length; j++) {
            Number reached = zero();
            if (i == 0 && j == 0) reached = (Number){1.0 - (V){0}, {0}};
            if (j) reached = times(in_a[j - 1], w->insert[j - 1]);
            if (i && j) {
                Number consumed = times(above[j - 1], replaced(w, i - 1, j - 1));
                reached = only_largest ? larger(reached, consumed) : sum(reached, consumed);
            }
            Number stopped = times(reached, *w->stop);
            if (i) {
                Number erased = times(above[j], *w->erase);
                stopped = only_largest ? larger(stopped, erased) : sum(stopped, erased);
            }
            in_a[j] = reached;
            in_b[j] = stopped;
        }
        for (int lane = 0; lane < LANES; lane++) {
            if ((*w->source_lengths)[lane] != i) continue;
            int64_t j = (*w->lengths)[lane];
            total->m[lane] = in_b[j].m[lane];
            total->e[lane] = in_b[j].e[lane];
        }
    }
}

/* B_A: the weight of all ways from a cell to the end; `b` is room for two rows. */
void backward(const Moves *w, Number *a, Number *b) {
    int64_t width = w->length + 1;
    for (int64_t i = w->source; i >= 0; i--) {
        Number *from_a = a + i * width, *from_b = b + i % 2 * width;
        const Number *below_a = from_a + width, *below_b = b + (i + 1) % 2 * width;
        for (int64_t j = w->length; j >= 0; j--) {
            I ends = (*w->source_lengths == i) & (*w->lengths == j);
            V one = (V)((I)(1.0 - (V){0}) & ends);
            Number onward = {one, chosen_exponent(ends, (I){0}, NOTHING - (I){0})};
            if (i < w->source) onward = sum(onward, times(below_b[j], *w->erase));
            if (i < w->source && j < w->length)
                onward = sum(onward, times(below_a[j + 1], replaced(w, i, j)));
            Number stopping = times(onward, *w->stop);
            if (j < w->length) stopping = sum(stopping, times(from_a[j + 1], w->insert[j]));
            from_b[j] = onward;
            from_a[j] = stopping;
        }
    }
}

static double share(Number part, V p, Number whole, int lane) {
    int64_t d = part.e[lane] - whole.e[lane];
    if (part.m[lane] == 0.0 || d < -1022) return 0.0;
    return ldexp(part.m[lane] * p[lane] / whole.m[lane], (int)d);
}

/* Back from the end, two draws for each move; from which token of x_0 each of x_t comes, or -1.
   A move is made if its draw is below its share of what leads here. */
void walk(const Moves *w, const Number *a, const Number *b, const V *draws, I *from) {
    int64_t width = w->length + 1;
    for (int64_t j = 0; j < w->length; j++) from[j] = -1 - (I){0};
    for (int lane = 0; lane < LANES; lane++) {
        int64_t i = (*w->source_lengths)[lane], j = (*w->lengths)[lane];
        int may_erase = 1;
        for (const V *draw = draws; i > 0 || j > 0; draw += 2) {
            const Number *here = b + i * width + j, *above = here - width;
            if (may_erase && i > 0 && draw[0][lane] < share(*above, *w->erase, *here, lane)) {
                i--;
                continue;
            }
            if (i > 0 && j > 0 &&
                draw[1][lane] <
                    share(above[-1], replaced(w, i - 1, j - 1), a[i * width + j], lane)) {
                from[--j][lane] = --i;
                may_erase = 1;
                continue;
            }
            if (j == 0) break; /* no way leads here: the caller has refused the pair */
            j--;
            may_erase = 0;
        }
    }
}
