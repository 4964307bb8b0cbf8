/*
 * clock_watch.c - see clock_watch.h.
 *
 * How far the clock was set is seen against CLOCK_BOOTTIME, which also goes on while the machine sleeps.
 */
#include "daemon/clock_watch.h"

#include "daemon/chronicle.h"
#include "daemon/clock.h"
#include "daemon/log.h"

#include <event2/event.h>
#include <sys/timerfd.h>

#define FAR_SECONDS (INT64_C(1) << 40) /* the timer itself never goes off */

struct clock_watch {
    struct line *line;
    int fd;
    struct event *event;
    int64_t offset_us; /* of the wall to the boot */
};

static int64_t read_offset_us(void)
{
    return clock_wall_us() - clock_read_us(CLOCK_BOOTTIME);
}

static int arm(struct clock_watch *watch)
{
    const struct itimerspec never = {.it_value.tv_sec = FAR_SECONDS};
    watch->offset_us = read_offset_us();
    return timerfd_settime(watch->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0
               ? -errno
               : 0;
}

static void clock_was_set(evutil_socket_t fd, short what, void *context)
{
    struct clock_watch *watch = context;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) >= 0 || errno != ECANCELED)
        return;
    const int64_t step_ms = (read_offset_us() - watch->offset_us) / 1000;
    int rc = arm(watch);
    if (rc < 0)
        log_error("steps of the clock are not seen any more: timerfd_settime: %d", -rc);
    if (step_ms > -CLOCK_WATCH_STEP_MS && step_ms < CLOCK_WATCH_STEP_MS)
        return;
    log_warning("the clock was set by %lld ms", (long long)step_ms);
    chronicle_clock_stepped(watch->line, step_ms);
}

int clock_watch_new(struct line *line, struct clock_watch **out)
{
    struct clock_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    watch->line = line;
    watch->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    int rc = watch->fd < 0 ? -errno : arm(watch);
    if (rc == 0)
        watch->event = event_new(line->base, watch->fd, EV_READ | EV_PERSIST, clock_was_set, watch);
    if (rc == 0 && (!watch->event || event_add(watch->event, NULL) != 0))
        rc = -ENOMEM;
    if (rc < 0)
        clock_watch_free(watch);
    else
        *out = watch;
    return rc;
}

void clock_watch_free(struct clock_watch *watch)
{
    if (!watch)
        return;
    if (watch->event)
        event_free(watch->event);
    base_close(&watch->fd);
    free(watch);
}
