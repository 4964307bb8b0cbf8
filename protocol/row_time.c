/*
 * row_time.c - microseconds since the epoch to text and back (declared in row.h).
 *
 * The proleptic Gregorian calendar, UTC, no leap seconds, years 0001 to 9999; by arithmetic alone,
 * so that no time zone, locale or library can change what was hashed.
 */
#include "protocol/row.h"

#include <stdio.h>
#include <string.h>

#define SECOND_US   INT64_C(1000000)
#define DAY_US      (86400 * SECOND_US)
#define ERA_DAYS    146097                                  /* 400 years */
#define EPOCH_DAYS  719468                                  /* from 0000-03-01 to 1970-01-01 */
#define TIME_MIN_US (INT64_C(-62135596800) * SECOND_US)     /* 0001-01-01T00:00:00 */
#define TIME_MAX_US (INT64_C(253402300800) * SECOND_US - 1) /* 9999-12-31T23:59:59.999999 */

struct civil {
    int64_t year, month, day;
};

/* Years are counted from March, so that the leap day is the last of its year. */
static struct civil civil_from_days(int64_t days)
{
    int64_t shifted = days + EPOCH_DAYS; /* not negative in the years 1..9999 */
    int64_t era = shifted / ERA_DAYS;
    int64_t day_of_era = shifted % ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    return (struct civil){.year = era * 400 + year_of_era + (month <= 2),
                          .month = month,
                          .day = day_of_year - (153 * month_from_march + 2) / 5 + 1};
}

static int64_t days_from_civil(const struct civil *civil)
{
    int64_t year = civil->year - (civil->month <= 2);
    int64_t era = year / 400;
    int64_t year_of_era = year % 400;
    int64_t month_from_march = civil->month > 2 ? civil->month - 3 : civil->month + 9;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + civil->day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * ERA_DAYS + day_of_era - EPOCH_DAYS;
}

static void put_digits(char *at, size_t count, int64_t value)
{
    for (; count-- > 0; value /= 10)
        at[count] = (char)('0' + value % 10);
}

void row_time_text(int64_t us, char out[ROW_TIME_BYTES])
{
    us = us < TIME_MIN_US ? TIME_MIN_US : us > TIME_MAX_US ? TIME_MAX_US : us;
    int64_t days = us / DAY_US - (us % DAY_US < 0);
    int64_t rest = us - days * DAY_US;
    int64_t second = rest / SECOND_US;
    struct civil civil = civil_from_days(days);
    memcpy(out, "0000-00-00T00:00:00.000000Z", ROW_TIME_BYTES);
    put_digits(out, 4, civil.year);
    put_digits(out + 5, 2, civil.month);
    put_digits(out + 8, 2, civil.day);
    put_digits(out + 11, 2, second / 3600);
    put_digits(out + 14, 2, second / 60 % 60);
    put_digits(out + 17, 2, second % 60);
    put_digits(out + 20, 6, rest % SECOND_US);
}

static int64_t read_digits(const char *text, size_t count)
{
    int64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

static bool has_form(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    for (size_t i = 0; i < sizeof(form); i++) {
        bool right = form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
        if (!right)
            return false;
    }
    return true;
}

bool row_time_parse(const char *text, int64_t *us)
{
    if (!has_form(text))
        return false;
    struct civil civil = {read_digits(text, 4), read_digits(text + 5, 2), read_digits(text + 8, 2)};
    int64_t second = read_digits(text + 11, 2) * 3600 + read_digits(text + 14, 2) * 60 +
                     read_digits(text + 17, 2);
    int64_t value =
        days_from_civil(&civil) * DAY_US + second * SECOND_US + read_digits(text + 20, 6);
    /* A day, hour or second that does not exist comes back as another one. */
    char again[ROW_TIME_BYTES];
    row_time_text(value, again);
    if (strcmp(again, text) != 0)
        return false;
    *us = value;
    return true;
}
