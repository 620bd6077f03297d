# make                 build; the MPI program needs an MPI found by pkg-config
# make check           every test that this machine can run (check-unit, check-cli, check-mpi, check-lab: one suite)
# make lint            formatting, cppcheck, shellcheck, spelling, includes point down
# make bench           ratios against a bare MPI loop, stop rule, look-ups
# make fuzz            libFuzzer on the file readers, FUZZ_SECONDS=60 each (needs clang)
# make readme          the table of published claims in README.md anew
# make install         PREFIX=/usr/local DESTDIR=; make uninstall takes it away again
# make SAN=address,undefined check     the same tests under sanitizers, in their own build tree
# make V=1             show the commands
# make CUDA=0|1        GPU transports; 1 when nccl sources and nvcc are there (none in this version)

VERSION := 0.1.0
SONAME  := librailgauge.so.0
PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
FUZZ_SECONDS ?= 60
FUZZ_CC ?= $(firstword $(foreach c,clang clang-19 clang-16 clang-14,$(if $(shell command -v $c),$c)) clang)

comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)

CUDA_HOME ?= /usr/local/cuda
CUDA_SRC  := $(wildcard kernels/*.cu)
CUDA      ?= $(if $(and $(CUDA_SRC),$(wildcard $(CUDA_HOME)/bin/nvcc)),1,0)
ifneq ($(CUDA),0)
ifeq ($(CUDA_SRC),)
$(info CUDA=$(CUDA): this version has no GPU transport; the build is that of CUDA=0)
endif
endif

CFLAGS   ?= -O2 -g
WARN     := -std=c11 -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
PIC      := -fPIC -fno-semantic-interposition
CPPFLAGS += -D_GNU_SOURCE -DRG_VERSION='"$(VERSION)"' -Isrc -I.
PKG      ?= pkg-config
JSON_CFLAGS := $(shell $(PKG) --cflags jansson)
JSON_LIBS   := $(shell $(PKG) --libs jansson) -pthread
MPI_PKG     := $(firstword $(foreach p,ompi-c mpich,$(if $(shell $(PKG) --exists $p hwloc && echo y),$p)))
MPI_CFLAGS  := $(if $(MPI_PKG),$(shell $(PKG) --cflags $(MPI_PKG) hwloc))
MPI_LIBS    := $(if $(MPI_PKG),$(shell $(PKG) --libs $(MPI_PKG) hwloc))
$(if $(MPI_PKG),,$(info no MPI with hwloc found by $(PKG): railgauge-probe is left out))

# The MPI program's own files; everything else builds without MPI.
MPI_SRC := src/probe/probe_main.c src/probe/transport_mpi.c src/probe/world_mpi.c src/probe/mpi_ops.c src/probe/mpi_clock.c \
    src/step/replay_mpi.c src/step/replay_side.c src/step/replay_world.c topo/gather.c topo/hwloc.c topo/local.c
CMD_SRC := src/main.c $(wildcard src/cmd/*.c)
LIB_SRC := $(filter-out $(MPI_SRC),$(wildcard $(addsuffix /*.c,src/base topo src/probe src/cost src/step src/verdict src/emit)))

obj   = $(patsubst %,$(BUILD)/%.o,$(1))
bin   = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))
LIB   := $(BUILD)/librg.a
PROBE := $(if $(MPI_PKG),$(BUILD)/railgauge-probe)
UNIT  := $(call bin,tests/unit/*.c)
BENCH := $(call bin,tests/bench/*.c)
FUZZ  := $(call bin,tests/fuzz/*.c)

all: $(BUILD)/railgauge $(PROBE) $(BUILD)/$(SONAME) $(BUILD)/railgauge.pc

$(BUILD)/railgauge: $(call obj,$(CMD_SRC)) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) -lm

# transport.c holds the one table of transports; the MPI program's copy knows more of them.
# MPI libraries leak by design: with sanitizers the program's own default is not to report that.
ASAN_QUIET := $(if $(findstring address,$(SAN)),$(BUILD)/tests/asan_probe.c.o)
$(BUILD)/railgauge-probe: $(call obj,$(wildcard $(MPI_SRC))) $(BUILD)/src/probe/transport.mpi.o $(ASAN_QUIET) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(JSON_LIBS) $(MPI_LIBS) -lm

# The public library is the file that defines railgauge_open() and what that needs from the archive.
$(BUILD)/$(SONAME): src/librailgauge.map $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,$< \
	    $(if $(SAN),,-Wl,-z,defs) -Wl,--undefined=railgauge_open -o $@ $(LIB) $(JSON_LIBS) -lm
	$(Q)ln -sf $(SONAME) $(BUILD)/librailgauge.so

$(BUILD)/railgauge.pc: src/railgauge.pc.in $(BUILD)/prefix
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

$(LIB): $(call obj,$(LIB_SRC))
	@echo "  AR   $@"
	$(Q)$(RM) $@ && $(AR) rcs $@ $^

$(UNIT): $(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.c.o $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(JSON_LIBS) -lm

$(BENCH): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.c.o $(call obj,$(filter src/probe/%,$(filter-out %_main.c,$(wildcard $(MPI_SRC))))) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) $(MPI_LIBS) -lm

FUZZFLAGS := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
$(FUZZ): $(BUILD)/tests/fuzz/%: $(BUILD)/fuzz/tests/fuzz/%.c.o $(patsubst %,$(BUILD)/fuzz/%.o,$(LIB_SRC))
	@mkdir -p $(@D) && echo "  LINK $@"
	$(Q)$(FUZZ_CC) $(FUZZFLAGS) -fsanitize=fuzzer -o $@ $^ $(JSON_LIBS) -lm

compile = $(WARN) $(CFLAGS) $(SANFLAGS) $(PIC) $(CPPFLAGS) $(JSON_CFLAGS)
$(call obj,$(MPI_SRC) $(wildcard tests/bench/*.c)): CPPFLAGS += $(MPI_CFLAGS)
$(BUILD)/src/base/file.c.o: CPPFLAGS += -DRG_DATADIR='"$(PREFIX)/share/railgauge"'
$(BUILD)/src/base/file.c.o: $(BUILD)/prefix
$(BUILD)/%.c.o: %.c $(BUILD)/flags
	@mkdir -p $(@D) && echo "  CC   $<"
	$(Q)$(CC) $(compile) -MMD -MP -c -o $@ $<
$(BUILD)/src/probe/transport.mpi.o: src/probe/transport.c $(BUILD)/flags
	@mkdir -p $(@D) && echo "  CC   $< (MPI)"
	$(Q)$(CC) $(compile) -DHAVE_MPI -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/%.c.o: %.c
	@mkdir -p $(@D) && echo "  CC   $< (fuzz)"
	$(Q)$(FUZZ_CC) $(WARN) $(FUZZFLAGS) -fsanitize=fuzzer-no-link $(CPPFLAGS) $(JSON_CFLAGS) \
	    -DRG_DATADIR='"$(PREFIX)/share/railgauge"' -MMD -MP -c -o $@ $<

# Files that change only when the compiler or its flags (or the prefix) do, so that a change rebuilds.
FLAGS_TEXT := $(CC) $(CFLAGS) $(WARN) $(SANFLAGS) $(PIC) $(CPPFLAGS) $(MPI_CFLAGS)
remember = mkdir -p $(BUILD) && echo '$(subst ','\'',$(1))' | cmp -s - $@ || echo '$(subst ','\'',$(1))' >$@
$(BUILD)/flags: FORCE
	@$(call remember,$(FLAGS_TEXT))
$(BUILD)/prefix: FORCE
	@$(call remember,$(PREFIX))

# --- tests: TAP from cmocka programs, bats files and scripts, judged by prove ---
SUITE_unit := $(UNIT) $(wildcard tests/unit/*.sh)
SUITE_cli  := $(wildcard tests/layers.sh tests/cli/*.bats tests/install.bats tests/bad/run.sh)
SUITE_mpi  := $(wildcard tests/mpi/*.bats)
SUITE_lab  := $(wildcard tests/lab/*.bats)
SUITES     := unit cli mpi lab
prove = RG_BUILD='$(CURDIR)/$(BUILD)' RG_SAN='$(SAN)' MAKEFLAGS= prove --timer --failures --comments --exec tests/tap.sh $(1)

check: all $(UNIT)
	$(Q)$(call prove,$(foreach s,$(SUITES),$(SUITE_$s)))
check-unit: $(UNIT)
check-cli check-mpi check-lab: all
$(SUITES:%=check-%): check-%:
	$(Q)$(if $(strip $(SUITE_$*)),$(call prove,$(SUITE_$*)),echo "suite $*: no tests"; exit 1)

bench: all $(BENCH)
	$(Q)for b in $(wildcard tests/bench/*.sh); do RG_BUILD='$(CURDIR)/$(BUILD)' ./$$b || exit 1; done

fuzz: $(FUZZ)
	$(Q)for f in $(notdir $(FUZZ)); do mkdir -p $(BUILD)/corpus/$$f && echo "  FUZZ $$f" && \
	    $(BUILD)/tests/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -verbosity=0 \
	    -dict=tests/fuzz/$$(case $$f in plan | points) echo tsv ;; *) echo json ;; esac).dict \
	    -print_final_stats=1 -artifact_prefix=$(BUILD)/$$f- $(BUILD)/corpus/$$f tests/fuzz/seeds/$$f || exit 1; done

C_FILES  := $(shell git ls-files '*.c' '*.h' 2>/dev/null || find src topo tests -name '*.[ch]')
SH_FILES := $(wildcard .ci/run jobs/*.sh tests/*.sh tests/*/*.sh)
# Names of ours and abbreviations of data sets: not misspelt.
WORDS    := nd,seach,upto,thi,toom,oom
lint:
	$(Q)clang-format --dry-run -Werror $(C_FILES)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,performance,portability \
	    --suppress=missingInclude --suppress=unknownMacro -D_GNU_SOURCE -DRG_VERSION='""' -DRG_DATADIR='""' -Isrc -I. $(filter %.c,$(C_FILES))
	$(Q)shellcheck $(SH_FILES)
	$(Q)mandoc -T lint -W warning src/railgauge.1
	$(Q)tests/layers.sh >/dev/null
	$(Q)if command -v codespell >/dev/null; then codespell --ignore-words-list=$(WORDS) src topo jobs tests/*/*.c README.md Makefile; \
	    else echo "codespell is not installed: spelling not checked"; fi
	@echo "lint: clean"

# What was published and what this build says of it, into the README between its two comments.
readme: all
	$(Q)$(BUILD)/railgauge predict --case all --markdown >$(BUILD)/cases.md || [ $$? = 1 ]
	$(Q)sed -i -e '/^<!-- cases -->/,/^<!-- end of cases -->/{//!d}' -e '/^<!-- cases -->/r $(BUILD)/cases.md' README.md

# --- install ---
D = $(DESTDIR)$(PREFIX)
DATA := $(wildcard $(addsuffix /*.json,topo/fabrics topo/schema src/schema jobs/training jobs/training/models jobs/training/cases) plots/*.gp)
install: all
	install -d $(D)/bin $(D)/lib/pkgconfig $(D)/include $(D)/share/man/man1
	install $(BUILD)/railgauge $(PROBE) $(D)/bin
	install -m 644 $(BUILD)/$(SONAME) $(D)/lib
	ln -sf $(SONAME) $(D)/lib/librailgauge.so
	install -m 644 $(BUILD)/railgauge.pc $(D)/lib/pkgconfig
	install -m 644 src/railgauge.h $(D)/include
	install -m 644 src/railgauge.1 $(D)/share/man/man1
	$(Q)for f in $(DATA); do install -D -m 644 $$f $(D)/share/railgauge/$$f || exit 1; done
uninstall:
	$(RM) $(addprefix $(D)/,bin/railgauge bin/railgauge-probe lib/$(SONAME) lib/librailgauge.so \
	    lib/pkgconfig/railgauge.pc include/railgauge.h share/man/man1/railgauge.1)
	$(RM) -r $(D)/share/railgauge

help:
	@sed -n 's/^# make/make/p' Makefile
clean:
	$(RM) -r build build-*

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all check $(SUITES:%=check-%) lint bench fuzz readme install uninstall help clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:

# --- the MPI program under SimGrid, from the same sources (tests/mpi/smpi.bats) ---
SMPI_SRC := $(wildcard $(MPI_SRC)) $(LIB_SRC)
$(BUILD)/railgauge-probe-smpi: $(SMPI_SRC:%=$(BUILD)/smpi/%.o)
	@echo "  LINK $@"
	$(Q)smpicc -o $@ $^ $(JSON_LIBS) $(shell $(PKG) --libs hwloc) -lm
$(BUILD)/smpi/%.c.o: %.c
	@mkdir -p $(@D) && echo "  SMPI $<"
	$(Q)smpicc $(WARN) $(CFLAGS) -fPIC $(CPPFLAGS) -DHAVE_MPI -DRG_DATADIR='"$(PREFIX)/share/railgauge"' $(JSON_CFLAGS) $(shell $(PKG) --cflags hwloc) -MMD -MP -c -o $@ $<
