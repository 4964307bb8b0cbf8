# The build of auditrun: one makefile for the whole tree, written by hand. `make help` lists what it
# does. It works right after a clone: `configure` (autoconf) and the configuration are made when they
# are missing. Everything generated is in $(BUILD), so that differently configured builds stand side
# by side and removing that folder is always safe.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash

SOURCE := $(CURDIR)
comma := ,

# ---- which build ----------------------------------------------------------------------------------
# CC and SANITIZE on the command line choose a folder of their own: build-clang,
# build-address-undefined, build-clang-address-undefined.

given_cc := $(if $(filter command,$(firstword $(origin CC))),$(CC))
ifeq ($(origin BUILD),undefined)
BUILD := build$(if $(given_cc),-$(notdir $(firstword $(given_cc))))$(if \
	$(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
endif

# What make was asked to configure. Empty: whatever the folder was configured with before.
wanted := $(strip $(if $(given_cc),CC='$(given_cc)') \
	$(if $(SANITIZE),--enable-sanitizers=$(SANITIZE)) \
	$(if $(WERROR),--enable-werror) \
	$(CONFIGURE_ARGS))

goals := $(or $(MAKECMDGOALS),all)
unconfigured_goals := help clean distclean format lint-format lint-conventions lint-shell fuzz
ifneq ($(filter-out $(unconfigured_goals),$(goals)),)
include $(BUILD)/config.mk
endif

all:

# ---- sources: a folder, its library, what that needs ----------------------------------------------
# All but the mains is in libraries, which the tests link. Dependencies point one way: protocol <-
# sinks, executors, cli; daemon sees protocol and sinks.

libraries := protocol sinks daemon cli exec-common exec-namespace test

folder_protocol := protocol
folder_sinks := sinks
folder_daemon := daemon
folder_cli := cli
folder_exec-common := executors/common
folder_exec-namespace := executors/namespace
folder_test := tests/lib

mains := daemon/main.c cli/main.c executors/namespace/main.c executors/common/once_main.c

sources = $(filter-out $(mains),$(sort $(wildcard $(folder_$1)/*.c)))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$1)

# The libraries that a library stands on, itself first, in the linker's order.
stack_protocol := protocol
stack_sinks := sinks protocol
stack_daemon := daemon sinks protocol
stack_cli := cli sinks protocol
stack_exec-common := exec-common protocol
stack_exec-namespace := exec-namespace exec-common protocol
stack_test := test sinks protocol

external_protocol = $(JANSSON_LIBS) $(CRYPTO_LIBS)
external_sinks = $(EVENT_LIBS) $(PQ_LIBS) $(SQLITE_LIBS)
external_daemon = $(EVENT_LIBS) $(INIH_LIBS)
external_cli = $(INIH_LIBS)
external_exec-common = $(JANSSON_LIBS) $(INIH_LIBS)
external_exec-namespace = $(SECCOMP_LIBS)
external_test = $(CHECK_LIBS) $(EVENT_LIBS)

archives = $(foreach l,$1,$(BUILD)/lib/lib$l.a)
externals = $(sort $(foreach l,$1,$(external_$l)))

# ---- programs -------------------------------------------------------------------------------------

programs := auditrund auditrun auditrun-executor-namespace auditrun-executor-once

main_auditrund := daemon/main.c
main_auditrun := cli/main.c
main_auditrun-executor-namespace := executors/namespace/main.c
main_auditrun-executor-once := executors/common/once_main.c

stack_auditrund := $(stack_daemon)
stack_auditrun := $(stack_cli)
stack_auditrun-executor-namespace := $(stack_exec-namespace)
stack_auditrun-executor-once := $(stack_exec-common)

program_paths := $(programs:%=$(BUILD)/%)

# The daemon of the crash tests: the same sources, with fault points (daemon/fault.h).
faults_path := $(BUILD)/tests/tools/auditrund-faults

# ---- tests ----------------------------------------------------------------------------------------
# tests/unit/check_X.c is linked with the library that has the module X (check_cli_X: of the folder
# cli), the other kinds with tests/lib and the sinks. Where that is not what a test needs, say it
# here: stack_check_NAME := libraries, in the linker's order.

unit_tests := $(sort $(wildcard tests/unit/check_*.c))
other_tests := $(sort $(wildcard tests/contract/check_*.c)) \
	$(sort $(wildcard tests/conformance/check_*.c)) \
	$(sort $(wildcard tests/e2e/check_*.c))
soak_tests := $(sort $(wildcard tests/soak/check_*.c))
long_tests := $(sort $(wildcard tests/long/check_*.c))
script_tests := $(sort $(wildcard tests/*/check_*.sh tests/*/check_*.py))
# About documents, packages, languages, the code of others, what SQL says, whole command lines: instrumented
# they take long and show little that other tests do not show.
uninstrumented_tests := tests/e2e/check_languages.c tests/e2e/check_hostile.c \
	tests/contract/check_verify.c $(filter-out tests/e2e/check_cli.sh,$(script_tests))
test_tools := $(sort $(wildcard tests/tools/*.c))
bench_parts := tests/bench/floor_sandbox.c
bench_tools := $(filter-out $(bench_parts),$(sort $(wildcard tests/bench/*.c)))
fuzzers := $(sort $(wildcard tests/fuzz/fuzz_*.c))

test_paths := $(patsubst %.c,$(BUILD)/%,$(unit_tests) $(other_tests) $(long_tests))
soak_paths := $(patsubst %.c,$(BUILD)/%,$(soak_tests))
tool_paths := $(patsubst %.c,$(BUILD)/%,$(test_tools))
bench_paths := $(patsubst %.c,$(BUILD)/%,$(bench_tools))
fuzz_paths := $(patsubst %.c,$(BUILD)/%,$(fuzzers))

folder_prefixes := protocol:protocol sinks:sinks sink:sinks daemon:daemon cli:cli \
	common:exec-common namespace:exec-namespace
module_library = $(firstword $(foreach l,$(filter-out test,$(libraries)),$(if \
	$(wildcard $(folder_$l)/$1.c),$l)))
prefixed_library = $(firstword $(foreach p,$(folder_prefixes),$(if \
	$(filter $(firstword $(subst :, ,$p))_%,$1),$(lastword $(subst :, ,$p)))))
home_library = $(or $(call module_library,$1),$(call prefixed_library,$1))

everything := daemon cli exec-namespace exec-common sinks protocol
with_test_library := $(if $(unit_tests),$(shell grep -l '^\#include "tests/lib/' $(unit_tests)))

# They read journals.
stack_check_crash := $(stack_test) daemon $(stack_daemon)
stack_check_journal_damage := $(stack_check_crash)
stack_check_failover := $(stack_check_crash)
stack_check_soak := $(stack_check_crash)

# The ranges of ids beside the files that give some.
stack_check_subids := $(stack_exec-namespace)

# Tools that are a part of tests/lib as a program.
stack_data_service := $(stack_test)

# Of the bench: what more than its own file a program is made of.
stack_steps := $(stack_test)
stack_egress := test $(stack_daemon)
parts_floor := tests/bench/floor_sandbox.c

unit_stack = $(or $(stack_$(notdir $1)),$(if \
	$(filter $1.c,$(with_test_library)),test) $(or \
	$(stack_$(call home_library,$(patsubst check_%,%,$(notdir $1)))),$(everything)))
other_stack = $(or $(stack_$(notdir $1)),$(stack_test))
tool_stack = $(or $(stack_$(notdir $1)),$(stack_exec-common))
bench_stack = $(or $(stack_$(notdir $1)),$(stack_sinks))
fuzz_stack = $(or $(stack_$(notdir $1)),$(stack_$(call \
	home_library,$(patsubst fuzz_%,%,$(notdir $1)))),$(stack_protocol))

# ---- flags ----------------------------------------------------------------------------------------

compile_flags = -std=gnu11 $(DEFINE_FLAGS) -I. -I$(BUILD)/generated $(LIBRARY_CFLAGS) -pthread \
	$(WARN_FLAGS) $(HARDEN_FLAGS) $(INSTRUMENT_FLAGS) $(CPPFLAGS) $(CFLAGS)
link_flags = -pthread $(HARDEN_FLAGS) $(HARDEN_LINK_FLAGS) $(INSTRUMENT_FLAGS) $(CFLAGS) $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-9s %s\n' $1 $2)

# ---- goals ----------------------------------------------------------------------------------------

.PHONY: all tests help check check-long check-leaks check-vm valgrind-check bench soak fuzz fuzz-run lint format install uninstall \
	clean distclean FORCE $(programs)

all: $(program_paths)

tests: $(program_paths) $(faults_path) $(test_paths) $(tool_paths) $(fuzz_paths)

$(programs): %: $(BUILD)/%

define library_goal
.PHONY: lib-$1
lib-$1: $(BUILD)/lib/lib$1.a
endef
$(foreach l,$(libraries),$(eval $(call library_goal,$l)))

help:
	@sed -n 's/^#: //p' Makefile

#: make                       build the programs into $(BUILD), build/ by default
#: make check                 build and run every test; the last line counts them
#: make check-long            the tests that take minutes: kills, failovers, full disks
#: make check-leaks           10,000 hostile runs (LEAK_RUNS=N), and nothing is left of them
#: make check-vm              version 2 of control groups, and the unit, in the machine of AUDITRUN_VM
#: make check T=NAME          one test program (check_NAME), one test case, or PROGRAM:CASE
#: make SANITIZE=address,undefined [check]      the same, instrumented, in a folder of its own
#: make CC=clang              another compiler, in a folder of its own
#: make WERROR=1              warnings are errors, as in CI
#: make CONFIGURE_ARGS='...'  more switches for configure (./configure --help lists them)
#: make BUILD=DIR             another folder for all that is generated
#: make V=1                   show the commands
#: make valgrind-check        the unit tests under valgrind
#: make lint                  layout, conventions, shellcheck, cppcheck, clang-tidy (of test programs: LINT_TESTS=1)
#: make format                lay the sources out
#: make bench                 measure against the anchors; BENCH_ARGS: parts, --rounds=N, --markdown
#: make soak                  faults of any kind under load for SOAK_SECONDS (120); SOAK_SEED=N again
#: make fuzz                  every fuzzer for FUZZ_SECONDS (30), with clang's libFuzzer
#: make install               to DESTDIR, below prefix (/usr/local); make uninstall takes it back
#: make lib-NAME              one library (protocol sinks daemon cli exec-common exec-namespace test)
#: make clean, distclean      remove what was built; and the configurations too

# ---- configuration --------------------------------------------------------------------------------

need = command -v $1 >/dev/null || { echo "make: $1 is missing: apt-get install $2" >&2; exit 1; }

configure: configure.ac
	@mkdir -p $(BUILD)
	@$(call need,autoconf,autoconf)
	$(call say,AUTOCONF,$@)
	$(Q)cd $(BUILD) && autoconf -o configure.new $(SOURCE)/configure.ac && \
		mv configure.new $(SOURCE)/configure

# Made again when asked for other switches than before, which recompiles all that depends on it.
ifneq ($(wanted),)
ifneq ($(wanted),$(file <$(BUILD)/config.args))
$(BUILD)/config.mk: FORCE
endif
endif

$(BUILD)/config.mk: configure config.mk.in
	@mkdir -p $(BUILD)
	$(call say,CONFIGURE,"$(BUILD) $(subst ",\",$(wanted))")
	$(Q)cd $(BUILD) && { \
		if [[ -x config.status && -z "$(wanted)" ]]; then \
			./config.status --recheck && ./config.status; \
		else \
			rm -f config.status && $(SOURCE)/configure $(wanted); \
		fi; } >configure.log 2>&1 || { \
			sed -n '/error:/,$$p' configure.log >&2; \
			echo "make: the configuration failed, see $(BUILD)/config.log" >&2; exit 1; }
	@printf '%s\n' "$(wanted)" >$(BUILD)/config.args

# Paths and version for the few files that include "build_config.h". Rewritten only when a value
# changes, so that `make install prefix=...` compiles those files again, and nothing else.
define build_config
/* Generated by the Makefile: where an installed auditrun has its files. */
#ifndef BUILD_CONFIG_H
#define BUILD_CONFIG_H
#define AR_VERSION "$(PACKAGE_VERSION)"
#define AR_CONFIG_FILE "$(sysconfdir)/auditrun/auditrun.conf"
#define AR_EXECUTOR_DIR "$(libexecdir)/auditrun"
#define AR_LANGUAGES_DIR "$(sysconfdir)/auditrun/languages.d"
#define AR_MODULES_DIR "$(datadir)/auditrun/lib"
#define AR_DATA_DIR "$(datadir)/auditrun"
#define AR_STATE_DIR "$(localstatedir)/lib/auditrun"
#define AR_RUN_DIR "$(runstatedir)/auditrun"
#endif
endef

# A file that takes its new text only if that differs, so that nothing is made again for nothing.
take_if_new = if cmp -s $1.new $1; then rm $1.new; else mv $1.new $1; fi

$(BUILD)/generated $(BUILD)/lib:
	@mkdir -p $@

$(BUILD)/generated/build_config.h: $(BUILD)/config.mk FORCE | $(BUILD)/generated
	@$(file >$@.new,$(build_config))$(call take_if_new,$@)

# ---- compiling ------------------------------------------------------------------------------------

$(BUILD)/obj/%.o: %.c $(BUILD)/config.mk | $(BUILD)/generated/build_config.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(compile_flags) $(if $(filter tests/%,$<),$(CHECK_CFLAGS)) -MMD -MP -c -o $@ $<

$(BUILD)/obj-faults/%.o: %.c $(BUILD)/config.mk | $(BUILD)/generated/build_config.h
	@mkdir -p $(@D)
	$(call say,CC,"$< (with fault points)")
	$(Q)$(CC) $(compile_flags) -DAR_FAULT_POINTS -MMD -MP -c -o $@ $<

# The migrations can be embedded by the sinks.
$(call objects,$(call sources,sinks)): $(wildcard sinks/postgres/*.sql sinks/sqlite/*.sql)

# The list of members is a file, so that a source that went away leaves the library too.
define library
$(BUILD)/lib/$1.members: FORCE | $(BUILD)/lib
	@$$(file >$$@.new,$1: $$(call sources,$1))$$(call take_if_new,$$@)

$(BUILD)/lib/lib$1.a: $(call objects,$(call sources,$1)) $(BUILD)/lib/$1.members
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $$(AR) rcsD $$@ $$(filter %.o,$$^)
endef
$(foreach l,$(libraries),$(eval $(call library,$l)))

# link(program, objects, libraries)
define link
$1: $2 $(call archives,$3)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(link_flags) $5 -o $$@ $2 $(call archives,$3) $$(call externals,$3) $4
endef

$(foreach p,$(programs),$(eval $(call \
	link,$(BUILD)/$p,$(call objects,$(main_$p)),$(stack_$p))))
$(foreach t,$(unit_tests:.c=),$(eval $(call \
	link,$(BUILD)/$t,$(call objects,$t.c),$(call unit_stack,$t),$$(CHECK_LIBS))))
$(foreach t,$(other_tests:.c=) $(long_tests:.c=) $(soak_tests:.c=),$(eval $(call \
	link,$(BUILD)/$t,$(call objects,$t.c),$(call other_stack,$t),$$(CHECK_LIBS))))
$(foreach t,$(test_tools:.c=),$(eval $(call \
	link,$(BUILD)/$t,$(call objects,$t.c),$(call tool_stack,$t))))
$(foreach t,$(bench_tools:.c=),$(eval $(call \
	link,$(BUILD)/$t,$(call objects,$t.c $(parts_$(notdir $t))),$(call bench_stack,$t))))

faults_objects := $(patsubst %.c,$(BUILD)/obj-faults/%.o,$(call sources,daemon) \
	$(main_auditrund))
$(eval $(call link,$(faults_path),$(faults_objects),$(filter-out daemon,$(stack_daemon)),$$(call \
	externals,daemon)))

# A fuzzer is linked with libFuzzer where configured, and with a main that replays a corpus otherwise.
replay := $(if $(filter yes,$(ENABLE_FUZZERS)),,$(call objects,tests/fuzz/replay.c))
$(foreach t,$(fuzzers:.c=),$(eval $(call \
	link,$(BUILD)/$t,$(call objects,$t.c) $(replay),$(call fuzz_stack,$t),,$$(FUZZ_LINK_FLAGS))))

c_sources := $(foreach l,$(libraries),$(call sources,$l)) $(wildcard $(mains)) $(unit_tests) \
	$(other_tests) $(long_tests) $(soak_tests) $(test_tools) $(bench_tools) $(bench_parts) \
	$(wildcard tests/fuzz/*.c)
headers := $(wildcard $(foreach l,$(libraries),$(folder_$l)/*.h) tests/*/*.h)

-include $(patsubst %.c,$(BUILD)/obj/%.d,$(c_sources)) $(faults_objects:.o=.d)

# ---- tests ----------------------------------------------------------------------------------------
# Programs find what was built and the tree through AUDITRUN_BUILD and AUDITRUN_SOURCE.

CHECK_TIMEOUT ?= 900
CHECK_JOBS ?= 3
run_checks = AUDITRUN_BUILD='$(abspath $(BUILD))' AUDITRUN_SOURCE='$(SOURCE)' \
	tests/tools/run-checks --log '$(BUILD)/check' --timeout $(CHECK_TIMEOUT) --jobs $(CHECK_JOBS) --only '$(T)'

# For one unit test nothing else has to be built.
named := $(firstword $(subst :, ,$(T)))
named_paths := $(if $(named),$(filter %/$(named) %/check_$(named) %/fuzz_$(named),$(patsubst \
	%.c,$(BUILD)/%,$(filter-out $(with_test_library),$(unit_tests))) $(fuzz_paths)))

check: $(or $(named_paths),tests)
	@$(run_checks) $(patsubst %.c,$(BUILD)/%,$(filter-out $(if $(SANITIZE),$(if \
		$(T),,$(uninstrumented_tests))),$(unit_tests) $(script_tests) $(other_tests)) $(if \
		$(T),$(patsubst %.c,$(BUILD)/%,$(long_tests)))) $(fuzz_paths)

check-long: tests
	@$(run_checks) $(patsubst %.c,$(BUILD)/%,$(long_tests))

LEAK_RUNS ?= 10000
check-leaks: CHECK_TIMEOUT = 7200
check-leaks: tests
	@AUDITRUN_LEAK_RUNS='$(LEAK_RUNS)' $(run_checks) $(BUILD)/tests/long/check_leaks

vm_programs := unit/check_cgroup e2e/check_limits tools/fake_provider
check-vm: $(program_paths) $(addprefix $(BUILD)/tests/,$(vm_programs))
	@AUDITRUN_BUILD='$(abspath $(BUILD))' AUDITRUN_SOURCE='$(SOURCE)' tests/vm/run $(VM_STEPS)

valgrind-check: $(patsubst %.c,$(BUILD)/%,$(unit_tests))
	@$(call need,valgrind,valgrind)
	@$(run_checks) --valgrind $(patsubst %.c,$(BUILD)/%,$(unit_tests))

bench: $(program_paths) $(tool_paths) $(bench_paths)
	@AUDITRUN_BUILD='$(abspath $(BUILD))' AUDITRUN_SOURCE='$(SOURCE)' tests/bench/run $(BENCH_ARGS)

SOAK_SECONDS ?= 120
SOAK_SEED ?=
soak: $(program_paths) $(faults_path) $(tool_paths) $(soak_paths)
	@AUDITRUN_BUILD='$(abspath $(BUILD))' AUDITRUN_SOURCE='$(SOURCE)' \
		SOAK_SECONDS='$(SOAK_SECONDS)' SOAK_SEED='$(SOAK_SEED)' $(BUILD)/tests/soak/check_soak

FUZZ_SECONDS ?= 30
fuzz:
	@$(call need,clang,clang)
	@$(MAKE) BUILD=$(BUILD)-fuzz CC=clang SANITIZE=address,undefined \
		CONFIGURE_ARGS=--enable-fuzzers fuzz-run

fuzz-run: $(fuzz_paths)
	@set -e; for fuzzer in $(fuzz_paths); do \
		name=$${fuzzer##*/fuzz_}; \
		found=$(BUILD)/corpus/$$name; mkdir -p "$$found" "tests/fuzz/corpus/$$name"; \
		echo "  FUZZ      $$name, $(FUZZ_SECONDS) s"; \
		"$$fuzzer" -max_total_time=$(FUZZ_SECONDS) -timeout=5 -rss_limit_mb=1024 -verbosity=0 \
			-print_final_stats=1 -artifact_prefix="$$found-" "$$found" "tests/fuzz/corpus/$$name"; \
	done

# ---- lint -----------------------------------------------------------------------------------------

.PHONY: lint-format lint-conventions lint-shell lint-cppcheck lint-tidy lint-symbols

lint: lint-format lint-conventions lint-shell lint-symbols lint-cppcheck lint-tidy
	@echo 'lint: clean'

lint-format:
	@$(call need,clang-format,clang-format)
	$(call say,LINT,layout)
	$(Q)clang-format --dry-run -Werror $(c_sources) $(headers)

lint-conventions:
	$(call say,LINT,conventions)
	$(Q)tests/tools/lint-conventions $(c_sources) $(headers)

lint-shell:
	@$(call need,shellcheck,shellcheck)
	$(call say,LINT,shell)
	$(Q)find . \( -name .git -o -name 'build*' -o -name 'configure*' \) -prune -o -type f -exec awk \
		'FNR == 1 && /^#!.*[\/ ](ba|da)?sh( |$$)/ { print FILENAME } { nextfile }' {} + | \
		xargs -r shellcheck --external-sources --source-path=SCRIPTDIR

# What a library exports begins with the name of its file, and no library has writable globals.
lint-symbols: $(call archives,$(filter-out test,$(libraries)))
	$(call say,LINT,symbols)
	$(Q)tests/tools/lint-symbols $^

# It knows neither the cleanup attribute (hence no search for leaks) nor the macros of sys/queue.h.
lint-cppcheck: $(BUILD)/generated/build_config.h
	@$(call need,cppcheck,cppcheck)
	$(call say,LINT,cppcheck)
	@mkdir -p $(BUILD)/lint/cppcheck
	$(Q)cppcheck --quiet --std=c11 --platform=unix64 --enable=warning,performance,portability \
		--inline-suppr --error-exitcode=1 -j2 --cppcheck-build-dir=$(BUILD)/lint/cppcheck \
		--suppress='*:/usr/include/*' --suppress=memleak --suppress=resourceLeak \
		--library=tests/tools/queue.cppcheck.cfg --template=gcc \
		-D_GNU_SOURCE -D__linux__ -D__x86_64__ \
		'-DSTART_TEST(n)=static void n(int _i)' -DEND_TEST= -I. -I$(BUILD)/generated $(c_sources)

# A source is looked at again when it, or a header that it includes, has changed.
tidy_flags = $(filter-out -Wlogical-op -Wduplicated-cond -Wnull-dereference -Werror \
	-fstack-clash-protection,$(compile_flags)) $(CHECK_CFLAGS) -Wno-unknown-warning-option
# It is the slowest of them, by far: test programs are looked at when asked for.
tidy_stamps := $(patsubst %.c,$(BUILD)/lint/%.tidy,$(if $(LINT_TESTS),$(c_sources),$(foreach \
	l,$(libraries),$(call sources,$l)) $(wildcard $(mains))))

lint-tidy: $(tidy_stamps)

$(BUILD)/lint/%.tidy: %.c $(BUILD)/obj/%.o .clang-tidy
	@$(call need,clang-tidy,clang-tidy)
	@mkdir -p $(@D)
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet $< -- $(tidy_flags) 2>$@.log || { cat $@.log >&2; exit 1; }
	@touch $@

format:
	@$(call need,clang-format,clang-format)
	$(Q)clang-format -i $(c_sources) $(headers)

# ---- installing -----------------------------------------------------------------------------------

unitdir = $(prefix)/lib/systemd/system
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
completiondir = $(datadir)/bash-completion/completions
confdir = $(sysconfdir)/auditrun
executordir = $(libexecdir)/auditrun
sqldir = $(datadir)/auditrun/postgres
moduledir = $(datadir)/auditrun/lib

man_pages := $(wildcard man/*.[1-8])
units := $(wildcard systemd/*.service systemd/*.socket systemd/*.slice)
completions := $(wildcard etc/completion/*)
configurations := $(wildcard etc/*.conf etc/*/*.conf)
documents := README.md LICENSE $(wildcard docs/*.md)
migrations := $(wildcard sinks/postgres/*.sql)
# What code may import (docs/data-port.md), in a folder for each language.
code_modules := $(wildcard executors/lib/*/*)

# put(mode, folder, files): nothing for no files
put = $(if $(strip $3),$(INSTALL) -d $(DESTDIR)$2 && $(INSTALL) -m $1 $3 $(DESTDIR)$2)

# What units and configurations say @name@ for.
place = sed -e 's|@sbindir@|$(sbindir)|g' -e 's|@bindir@|$(bindir)|g' \
	-e 's|@libexecdir@|$(libexecdir)|g' -e 's|@sysconfdir@|$(sysconfdir)|g' \
	-e 's|@localstatedir@|$(localstatedir)|g' -e 's|@runstatedir@|$(runstatedir)|g'

# A configuration that is there already belongs to the administrator: the new one goes beside it.
install: all
	$(call say,INSTALL,"$(DESTDIR)$(prefix)")
	$(Q)$(call put,755,$(sbindir),$(BUILD)/auditrund)
	$(Q)$(call put,755,$(bindir),$(BUILD)/auditrun)
	$(Q)$(call put,755,$(executordir),$(filter-out %/auditrund %/auditrun,$(program_paths)))
	$(Q)$(foreach p,$(man_pages),$(call put,644,$(mandir)/man$(subst .,,$(suffix $p)),$p) &&) :
	$(Q)$(foreach c,$(completions),$(INSTALL) -D -m 644 $c \
		$(DESTDIR)$(completiondir)/$(basename $(notdir $c)) &&) :
	$(Q)$(call put,644,$(docdir),$(wildcard $(documents)))
	$(Q)$(call put,644,$(sqldir),$(migrations))
	$(Q)$(foreach m,$(code_modules),$(INSTALL) -D -m 644 $m $(DESTDIR)$(moduledir)/$(m:executors/lib/%=%) &&) :
	$(Q)for unit in $(units); do \
		$(INSTALL) -d $(DESTDIR)$(unitdir) && \
		$(place) "$$unit" >$(DESTDIR)$(unitdir)/"$${unit##*/}" || exit 1; done
	$(Q)$(INSTALL) -d $(DESTDIR)$(sysusersdir) $(DESTDIR)$(tmpfilesdir)
	$(Q)$(place) systemd/auditrun.sysusers >$(DESTDIR)$(sysusersdir)/auditrun.conf
	$(Q)$(place) systemd/auditrun.tmpfiles >$(DESTDIR)$(tmpfilesdir)/auditrun.conf
	$(Q)for conf in $(configurations); do \
		name=$(DESTDIR)$(confdir)/$${conf#etc/}; \
		$(INSTALL) -d "$${name%/*}" && $(place) "$$conf" >"$$name.new" || exit 1; \
		if [[ -e $$name ]] && ! cmp -s "$$name" "$$name.new"; then \
			echo "  kept      $$name, the new one is $$name.new"; \
		else \
			mv "$$name.new" "$$name" || exit 1; \
		fi; done

uninstall:
	$(call say,UNINSTALL,"$(DESTDIR)$(prefix)")
	$(Q)rm -f $(addprefix $(DESTDIR),$(sbindir)/auditrund $(bindir)/auditrun \
		$(patsubst $(BUILD)/%,$(executordir)/%,$(filter-out %/auditrund %/auditrun,$(program_paths))) \
		$(foreach p,$(man_pages),$(mandir)/man$(subst .,,$(suffix $p))/$(notdir $p)) \
		$(addprefix $(completiondir)/,$(basename $(notdir $(completions)))) \
		$(addprefix $(docdir)/,$(notdir $(documents))) \
		$(addprefix $(sqldir)/,$(notdir $(migrations))) \
		$(addprefix $(moduledir)/,$(code_modules:executors/lib/%=%)) \
		$(sysusersdir)/auditrun.conf $(tmpfilesdir)/auditrun.conf \
		$(addprefix $(unitdir)/,$(notdir $(units))))
	$(Q)for conf in $(configurations); do \
		name=$(DESTDIR)$(confdir)/$${conf#etc/}; rm -f "$$name.new"; \
		if cmp -s <($(place) "$$conf") "$$name"; then rm -f "$$name"; \
		elif [[ -e $$name ]]; then echo "  kept      $$name, it was changed"; fi; done
	$(Q)for folder in $(addprefix $(DESTDIR),$(executordir) $(docdir) $(sqldir) \
			$(addprefix $(moduledir),/python /javascript) $(moduledir) \
			$(datadir)/auditrun $(confdir)/languages.d $(confdir)); do \
		[[ ! -d $$folder ]] || rmdir --ignore-fail-on-non-empty "$$folder"; done

clean:
	rm -rf $(addprefix $(BUILD)/,obj obj-faults lib tests generated lint check corpus $(programs))

distclean:
	rm -rf build build-* $(if $(filter-out build,$(BUILD)),$(BUILD)) configure
