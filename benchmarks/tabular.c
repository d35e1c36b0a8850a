/* Algorithm 1 of the paper with two objectives on deterministic tables, as plain C: the limit of the tabular kernel.
 *
 * benchmarks/tabular_limit.py compiles it (gcc -O3 -march=native), runs it beside the kernel of
 * finite/q_learning.py and checks that both learn the same Q to the bit. It does what the preset `paper` needs and
 * nothing else: no records of the episode, no schedules, no random outcomes, one start.
 */
#include <math.h>
#include <stdint.h>

static inline double random_float(uint64_t *rng) {
    *rng += 0x9E3779B97F4A7C15u;
    uint64_t z = *rng;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * (1.0 / 9007199254740992.0);
}

/* Lex-Argmax of one row, `q` is (2, U); value[k] becomes what the row is worth to objective k. */
static inline int64_t lex_row(const double *q, int64_t U, double slack, double *value) {
    const double *q0 = q, *q1 = q + U;
    double best = -INFINITY, second = -INFINITY;
    int64_t choice = 0;
    for (int64_t u = 0; u < U; u++)
        if (q0[u] > best) best = q0[u];
    for (int64_t u = 0; u < U; u++)
        if (q0[u] >= best - slack && q1[u] > second) {
            second = q1[u];
            choice = u;
        }
    value[0] = q0[choice];
    value[1] = second;
    return choice;
}

/* Q is (states + 1, 2, U), its last row is the end's; returns how many decisions the steps took. */
int64_t learn(double *Q, int64_t end, int64_t n_actions, int64_t U, int64_t horizon, int64_t start,
              const int64_t *next_state, const double *reward, const int64_t *durations, const int64_t *actions,
              double alpha, double epsilon, double slack, uint64_t *rng, int64_t until) {
    double value[2];
    int64_t steps = 0, decisions = 0, s = start, t = 0;
    int64_t greedy = lex_row(Q + s * 2 * U, U, slack, value);
    while (steps < until) {
        int64_t u = greedy;
        if (random_float(rng) < epsilon) u = (int64_t)(random_float(rng) * (double)U);
        int64_t from = s, begun = t, last = t + durations[u] < horizon ? t + durations[u] : horizon;
        double G = 0.0;
        for (; t < last && s != end; t++) {
            int64_t at = s * n_actions + actions[u];
            G += reward[at];
            s = next_state[at];
        }
        const double *after = Q + s * 2 * U;
        double *q = Q + from * 2 * U;
        greedy = lex_row(after, U, slack, value);
        q[u] = (1.0 - alpha) * q[u] + alpha * (G + value[0]);
        if (s == from) lex_row(after, U, slack, value);
        q[U + u] = (1.0 - alpha) * q[U + u] + alpha * (-1.0 + value[1]);
        if (s == from) greedy = lex_row(after, U, slack, value);
        steps += t - begun;
        decisions++;
        if (s == end || t >= horizon) {
            s = start;
            t = 0;
            greedy = lex_row(Q + s * 2 * U, U, slack, value);
        }
    }
    return decisions;
}
