/*
 * screen.c - see screen.h. The sequences are those that every terminal of the last decades knows.
 */
#include "cli/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#define TAKE_SEQUENCE      "\033[?1049h\033[?25l"
#define GIVE_BACK_SEQUENCE "\033[?25h\033[?1049l"
#define ROWS_DEFAULT       24

static int watch_signals(struct screen *screen)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    screen->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return screen->signals < 0 ? -errno : 0;
}

/* One key at a time, unseen; control-C still interrupts, and nothing stops us with the screen taken. */
static void take_keyboard(struct screen *screen)
{
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &screen->before) != 0)
        return;
    struct termios ours = screen->before;
    ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    ours.c_cc[VSUSP] = _POSIX_VDISABLE;
    ours.c_cc[VMIN] = 0;
    ours.c_cc[VTIME] = 0;
    screen->keys = tcsetattr(STDIN_FILENO, TCSAFLUSH, &ours) == 0;
}

static int say(const char *sequence)
{
    if (fputs(sequence, stdout) < 0 || fflush(stdout) != 0)
        return errno ? -errno : -EIO;
    return 0;
}

int screen_open(struct screen *screen, bool take)
{
    *screen = (struct screen){.signals = -1};
    int rc = watch_signals(screen);
    if (rc < 0 || !take)
        return rc;
    take_keyboard(screen);
    screen->taken = true;
    rc = say(TAKE_SEQUENCE);
    if (rc < 0)
        screen_close(screen);
    return rc;
}

void screen_close(struct screen *screen)
{
    if (screen->taken)
        (void)say(GIVE_BACK_SEQUENCE); /* a terminal that is gone needs nothing */
    if (screen->keys)
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
    base_close(&screen->signals);
    *screen = (struct screen){.signals = -1};
}

int screen_signals(const struct screen *screen)
{
    return screen->signals;
}

static enum screen_event take_signal(const struct screen *screen)
{
    struct signalfd_siginfo info;
    if (read(screen->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
        info.ssi_signo == SIGWINCH)
        return SCREEN_DRAW;
    return SCREEN_QUIT;
}

static enum screen_event take_key(void)
{
    char key = 0;
    return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 4 ? SCREEN_QUIT
                                                                                    : SCREEN_DRAW;
}

enum screen_event screen_wait(const struct screen *screen, int64_t ms)
{
    struct pollfd fds[] = {{.fd = screen->signals, .events = POLLIN},
                           {.fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN}};
    int ready = poll(fds, AR_COUNT(fds), ms > INT32_MAX ? INT32_MAX : (int)ms);
    if (ready == 0)
        return SCREEN_TIME;
    if (ready < 0)
        return SCREEN_QUIT;
    return fds[0].revents ? take_signal(screen) : take_key();
}

size_t screen_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row
                                                                           : ROWS_DEFAULT;
}

int screen_draw(const char *text, size_t length)
{
    const char *end = text + length;
    (void)fputs("\033[H", stdout);
    for (size_t rows = screen_rows(); text < end && rows > 0; rows--) {
        size_t line = strcspn(text, "\n");
        (void)printf("%.*s\033[K%s", (int)line, text, rows > 1 ? "\n" : "");
        text += line + (text[line] == '\n');
    }
    return say("\033[J");
}
