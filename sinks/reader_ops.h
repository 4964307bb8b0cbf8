/*
 * reader_ops.h - what a store does for a reader. For the files sinks/reader.c and *_reader.c only.
 */
#ifndef AUDITRUN_SINKS_READER_OPS_H
#define AUDITRUN_SINKS_READER_OPS_H

#include "protocol/text.h"
#include "sinks/reader.h"
#include "sinks/reader_sql.h"

/* Returns as the functions of reader.h. */
struct reader_ops {
    void (*close)(struct reader *reader);
    int (*freeze)(struct reader *reader);
    void (*thaw)(struct reader *reader);
    int (*query)(struct reader *reader, enum reader_sql_table table,
                 const struct reader_filter *filter, enum reader_order order);
    /* The next row of the query, into an initialized struct of the layout. */
    int (*next)(struct reader *reader, const struct row_layout *layout, void *row);
    int (*next_checkpoint)(struct reader *reader, struct checkpoint *out);
    int (*walk)(struct reader *reader, const char *writer);
    int (*walk_next)(struct reader *reader, const struct chain_row **out);
    int (*head)(struct reader *reader, const char *writer, int64_t *seq,
                char hash[DIGEST_HEX_BYTES]);
    int64_t (*estimate)(struct reader *reader);
    int (*writers)(struct reader *reader, struct text_list *writers);
};

/* Every store's struct begins with this. */
struct reader {
    const struct reader_ops *ops;
    char message[READER_MESSAGE_BYTES];
};

#endif
