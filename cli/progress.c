/*
 * progress.c - see progress.h. A line that draws over itself every few thousand rows.
 */
#include "cli/progress.h"

#include <inttypes.h>

#define EVERY_ROWS  4096
#define BAR_COLUMNS 30

void progress_begin(struct progress *progress, int64_t of)
{
    *progress = (struct progress){.of = of};
    terminal_open(&progress->terminal, stderr);
}

static void draw(struct progress *progress)
{
    static const char full[] = "##############################",
                      none[] = "..............................";
    _Static_assert(sizeof(full) == BAR_COLUMNS + 1 && sizeof(none) == sizeof(full), "one bar");
    FILE *stream = progress->terminal.stream;
    if (progress->of < 1) {
        (void)fprintf(stream, "\r%" PRId64 " rows", progress->done);
    } else {
        double part =
            progress->done >= progress->of ? 1 : (double)progress->done / (double)progress->of;
        int filled = (int)(part * BAR_COLUMNS);
        (void)fprintf(stream, "\r[%.*s%.*s] %3d%%  %" PRId64 " rows", filled, full,
                      BAR_COLUMNS - filled, none, (int)(part * 100), progress->done);
    }
    (void)fflush(stream);
    progress->drawn = true;
}

void progress_show(struct progress *progress, int64_t done, int64_t of)
{
    progress->done = done;
    progress->of = of;
    if (progress->terminal.is_terminal)
        draw(progress);
}

void progress_step(struct progress *progress)
{
    progress->done++;
    if (progress->done % EVERY_ROWS == 0)
        progress_show(progress, progress->done, progress->of);
}

void progress_end(struct progress *progress)
{
    if (!progress->drawn)
        return;
    (void)fprintf(progress->terminal.stream, "\r\033[K");
    (void)fflush(progress->terminal.stream);
    progress->drawn = false;
}
