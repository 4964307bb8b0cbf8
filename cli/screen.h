/*
 * screen.h - a terminal that is drawn again and again, and given back as it was.
 *
 * On a terminal it takes the other screen, hides the cursor and reads keys one by one; without one it
 * does none of that. Interrupts come over a descriptor, so that there are no handlers and the terminal
 * is given back in one place.
 */
#ifndef AUDITRUN_CLI_SCREEN_H
#define AUDITRUN_CLI_SCREEN_H

#include "protocol/base.h"

#include <termios.h>

/* Zeroed with signals -1: not open. */
struct screen {
    bool taken; /* the terminal is ours */
    bool keys;  /* and so is the keyboard */
    int signals;
    struct termios before;
};

enum screen_event {
    SCREEN_TIME, /* the time has passed */
    SCREEN_QUIT, /* q, an interrupt, or the end of the keyboard */
    SCREEN_DRAW  /* the window has another size, or a key that says nothing */
};

/* take: standard output is a terminal. 0 or -errno. */
int screen_open(struct screen *screen, bool take) AR_MUST_CHECK;
/* Gives back what it took. Harmless when it is not open. */
void screen_close(struct screen *screen);

/* A descriptor that is readable after an interrupt; borrowed. */
int screen_signals(const struct screen *screen);
/* Waits so long for something. */
enum screen_event screen_wait(const struct screen *screen, int64_t ms);
/* Lines of the window. */
size_t screen_rows(void);
/* Draws a text of lines from the top: no more than fit, and nothing of what was there before stays. 0 or
 * -errno. */
int screen_draw(const char *text, size_t length) AR_MUST_CHECK;

#endif
