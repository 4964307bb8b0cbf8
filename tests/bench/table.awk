# The tables of the bench, from its samples: `NAME P50 P99 RATE CPU FAULTS` a line, `@TABLE US NAME` for the
# breakdown. A figure is the median over the rounds. With markdown=1 as docs/performance.md has them.

function median(name, column,    n, i, k, sorted, swap) {
    n = count[name]
    for (i = 1; i <= n; i++) { sorted[i] = value[name, i, column] }
    for (i = 1; i <= n; i++) { for (k = i + 1; k <= n; k++) {
        if (sorted[k] < sorted[i]) { swap = sorted[i]; sorted[i] = sorted[k]; sorted[k] = swap } } }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

# ---- laying out: cells separated by a tab, widths and alignment by the table's heading ---------------

function heading(title, cells, layout,    i, n, line) {
    printf "\n%s%s\n\n", markdown ? "### " : "", title
    columns = split(layout, width, " ")
    row(cells)
    if (!markdown) { return }
    n = split(cells, line, "\t")
    for (i = 1; i <= n; i++) { printf "%s", width[i] < 0 ? "|---" : "|---:" }
    print "|"
}

function row(cells,    i, n, cell) {
    n = split(cells, cell, "\t")
    for (i = 1; i <= columns; i++) {
        if (i > n) { cell[i] = "" }
        if (markdown) { printf "| %s ", cell[i] } else { printf "%*s%s", width[i], cell[i], i < columns ? "  " : "" }
    }
    print markdown ? "|" : ""
}

function number(n) { return sprintf(n >= 100 ? "%.0f" : n >= 10 ? "%.1f" : "%.2f", n) }

function amount(n, unit) { return sprintf("%.0f %s", n, unit) }

# ---- targets ---------------------------------------------------------------------------------------

# mode: "most" is measured / anchor <= goal, "faster" is anchor / measured >= goal, "rate" is
# measured / anchor >= goal
function target(id, what, name, column, unit, anchor, title, mode, goal,    mine, other, ratio, met) {
    if (!count[name] && !count[anchor]) { return }
    if (!count[name] || !count[anchor]) {
        row(id "\t" what "\tnot measured\t" title "\t\t\t\t")
        return
    }
    mine = median(name, column)
    other = median(anchor, column)
    ratio = mode == "faster" ? other / mine : mine / other
    met = mode == "most" ? ratio <= goal : ratio >= goal
    row(id "\t" what "\t" amount(mine, unit) "\t" title "\t" amount(other, unit) "\t" sprintf("%.2f x", ratio) \
        "\t" (mode == "most" ? "at most " : "at least ") goal " x\t" (met ? "yes" : "no"))
}

# A figure with a goal of its own, or over another column of itself.
function bound(id, what, name, mine, unit, goal, most) {
    if (!count[name]) { return }
    row(id "\t" what "\t" number(mine) " " unit "\t\t\t\t" (most ? "at most " : "at least ") goal " " unit "\t" \
        ((most ? mine <= goal : mine >= goal) ? "yes" : "no"))
}

function spread(id, what, name) {
    if (count[name] && median(name, 2)) {
        row(id "\t" what "\t" amount(median(name, 3), "us") "\tits own p50\t" amount(median(name, 2), "us") "\t" \
            sprintf("%.2f x", median(name, 3) / median(name, 2)) "\tat most 3 x\t" \
            (median(name, 3) <= 3 * median(name, 2) ? "yes" : "no"))
    }
}

function targets() {
    heading("Targets", "\twhat\tmeasured\tanchor\t\tratio\tgoal\tmet", "-3 -48 12 -14 10 8 -14 -3")
    target("P1", "audited run of true, one client, p50", "audited.1", 2, "us", "floor.1", "slot floor", "most", 1.4)
    target("P1", "the same, recorded to PostgreSQL", "postgres.1", 2, "us", "floor.1", "slot floor", "most", 1.4)
    target("P1", "the same, after a rest (a sandbox built ahead)", "audited-rested", 2, "us", "floor-rested", "slot floor", "most", 1)
    target("P1", "times faster than", "audited.1", 2, "us", "bubblewrap.1", "bubblewrap", "faster", 3)
    target("P1", "", "audited.1", 2, "us", "isolate.1", "isolate", "faster", 2.2)
    target("P1", "", "audited.1", 2, "us", "crun.1", "crun", "faster", 5)
    spread("P2", "its p99", "audited.1")
    target("P3", "audited runs a second, 8 in flight", "audited.8", 4, "/s", "floor.8", "slot floor", "rate", 0.85)
    target("P3", "the same, recorded to PostgreSQL", "postgres.8", 4, "/s", "floor.8", "slot floor", "rate", 0.85)
    target("P3", "against", "audited.8", 4, "/s", "bubblewrap.8", "bubblewrap", "rate", 3.4)
    target("P3", "", "audited.8", 4, "/s", "crun.8", "crun", "rate", 5)
    target("P4", "audited python3 -I -c pass, p50", "python-audited", 2, "us", "python-bare", "bare python", "most", 1.15)
    target("P5", "audited run, heap of the daemon 256 MB larger", "heap-heavy", 2, "us", "heap-light", "without", "most", 1.05)
    target("P6", "audited denials a second, 64 connections", "denied64", 4, "/s", "pgbench64", "pgbench -c64", "rate", 1.6)
    target("P6", "1000 connections", "denied1000", 4, "/s", "pgbench64", "pgbench -c64", "rate", 1.9)
    target("P7", "denial, one client, p50", "denied1", 2, "us", "pgbench1", "pgbench -c1", "most", 1.3)
    target("P8", "rows a second, batches of 10", "batch10", 4, "/s", "pgbench64", "pgbench -c64", "rate", 1.4)
    target("P8", "batches of 100", "batch100", 4, "/s", "pgbench64", "pgbench -c64", "rate", 3.3)
    target("P8", "batches of 1000", "batch1000", 4, "/s", "pgbench64", "pgbench -c64", "rate", 3.6)
    if (count["older100"]) {
        target("P8", "batches of 100, behind older rows", "older100", 4, "/s", "batch100", "without", "rate", 0.9)
    }
    target("P9", "SQLite, denials a second, 64 in flight", "sqlite64", 4, "/s", "sqlite100", "bare loop", "rate", 0.8)
    memory_targets()
    bound("P12", "rows verified a second of processor, SQLite", "verified-sqlite", median_or_0("verified-sqlite", 4), "/s", 300000, 0)
    bound("P12", "PostgreSQL, without the server's share", "verified-postgres", median_or_0("verified-postgres", 4), "/s", 300000, 0)
    target("P13", "audited run with durable intents, p50", "synced", 2, "us", "unsynced", "not durable", "most", 1.15)
    network_targets()
}

function network_targets() {
    target("P14", "through the proxy of a run", "network-proxied", 4, "MiB/s", "network-direct", "loopback", "rate", 0.6)
    bound("P14", "timer of the loop late, 1000 connections, p99", "network-late", median_or_0("network-late", 2) / 1000, "ms", 20, 1)
    bound("P14", "the same, at worst, by the loop's own doing", "network-own", median_or_0("network-own", 2) / 1000, "ms", 20, 1)
}

function median_or_0(name, column) { return count[name] ? median(name, column) : 0 }

function memory_targets() {
    bound("P11", "the daemon, resident", "daemon-rss", median_or_0("daemon-rss", 2) / 1024, "MB", 8, 1)
    bound("P11", "for each of 1000 idle connections", "idle-bytes", median_or_0("idle-bytes", 2) / 1024, "KiB", 2, 1)
    bound("P11", "a slot, private", "slot-kib", median_or_0("slot-kib", 2) / 1024, "MB", 1.5, 1)
    bound("P11", "the daemon, for each of 64 runs in flight", "run-bytes", median_or_0("run-bytes", 2) / 1024, "KiB", 64, 1)
}

# ---- launches --------------------------------------------------------------------------------------

function cell(name, column) { return count[name] && median(name, column) ? number(median(name, column)) : "" }

function launch(title, name,    one, ratio) {
    one = name ".1"
    if (!count[one]) { return }
    ratio = count["floor.1"] ? sprintf("%.2f", median(one, 2) / median("floor.1", 2)) : ""
    row(title "\t" cell(one, 2) "\t" cell(one, 3) "\t" sprintf("%.2f", median(one, 3) / median(one, 2)) "\t" ratio \
        "\t" cell(one, 4) "\t" cell(name ".2", 4) "\t" cell(name ".8", 4) "\t" cell(one, 5) "\t" cell(name ".8", 5) "\t" cell(one, 6))
}

function launches() {
    if (!count["floor.1"]) { return }
    heading("Launches of a program that does nothing", "case\tp50 us\tp99 us\tp99/p50\tx slot floor\tper second, 1 in flight\t2\t8\tprocessor us, 1 in flight\t8\tpage faults", \
        "-34 8 8 8 12 23 8 8 25 8 12")
    launch("slot floor", "floor")
    launch("audited run, SQLite", "audited")
    launch("audited run, PostgreSQL", "postgres")
    launch("bubblewrap", "bubblewrap")
    launch("isolate --run", "isolate")
    launch("nsjail", "nsjail")
    launch("crun, no control groups", "crun")
    launch("runc", "runc")
    launch("firejail", "firejail")
    launch("runsc (ptrace)", "runsc")
    heading("The same after a rest of 20 ms before each", "case\tp50 us\tp99 us", "-34 10 10")
    pair("slot floor", "floor-rested")
    pair("slot floor, sandbox built ahead", "floor-ahead")
    pair("audited run, SQLite", "audited-rested")
}

function pair(title, name) {
    if (count[name]) { row(title "\t" cell(name, 2) "\t" cell(name, 3)) }
}

function pythons() {
    if (!count["python-bare"]) { return }
    heading("python3 -I -c pass", "case\tp50 us\tp99 us", "-34 10 10")
    pair("bare", "python-bare")
    pair("slot floor", "python-floor")
    pair("audited run", "python-audited")
}

function memory() {
    if (!count["daemon-rss"]) { return }
    heading("Memory", "what\tKiB", "-50 10")
    row("daemon, resident (libraries included)\t" median("daemon-rss", 2))
    row("daemon, private\t" median("daemon-private", 2))
    row("an idle connection\t" number(median("idle-bytes", 2) / 1024))
    row("a slot, private: launcher and prepared process\t" median("slot-kib", 2))
    row("a slot while its run waits, without the code\t" median("slot-running-kib", 2))
    row("a run in flight, in the daemon\t" number(median("run-bytes", 2) / 1024))
}

function breakdown(table, title,    i) {
    if (!lines[table]) { return }
    heading(title, "step\tp50 us", "-50 10")
    for (i = 1; i <= lines[table]; i++) { row(text[table, i] "\t" us[table, i]) }
}

/^@/ {
    table = substr($1, 2)
    n = ++lines[table]
    us[table, n] = $2
    text[table, n] = $0
    sub(/^[^ ]+ [^ ]+ /, "", text[table, n])
    next
}
{ n = ++count[$1]; for (i = 2; i <= 6; i++) { value[$1, n, i] = $i } }
END {
    targets()
    launches()
    pythons()
    memory()
    breakdown("timeline.sqlite", "An audited run, recorded to SQLite, one client")
    breakdown("timeline.postgres", "The same, recorded to PostgreSQL")
    breakdown("timeline.unsynced", "The same, SQLite, with a journal whose syncs cost nothing")
    breakdown("steps", "Within the sandbox, as its executor tells it")
}
