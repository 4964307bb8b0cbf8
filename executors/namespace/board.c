/*
 * board.c - the marks on a board.
 */
#include "executors/namespace/board.h"

#include <stdio.h>
#include <time.h>

/* What is done when the mark is reached. */
static const char *const words[MARK_COUNT] = {
    [MARK_BUILT] = "build",      [MARK_TAKEN] = "take",    [MARK_FILLED] = "fill",
    [MARK_STARTED] = "start",    [MARK_ENDED] = "code",    [MARK_TOLD] = "collect",
    [MARK_REAPED] = "tear-down", [MARK_CHECKED] = "check",
};

int64_t board_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void board_mark(struct board *board, enum mark mark)
{
    board->at_us[mark] = board_now_us();
}

void board_tell(const struct board *board)
{
    int64_t last = board->at_us[MARK_BEGIN];
    for (int i = MARK_BUILT; i < MARK_COUNT; i++) {
        if (board->at_us[i] == 0)
            continue;
        (void)fprintf(stderr, "step %s %lld\n", words[i], (long long)(board->at_us[i] - last));
        last = board->at_us[i];
    }
}
