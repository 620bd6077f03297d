# make                 build; the MPI program needs hwloc and an MPI, found by its mpicc or by pkg-config
# make MPI=intel MPICC=/opt/intel/bin/mpicc    the same, its MPI program railgauge-probe-intel, beside those for other MPIs
#                      (RAILGAUGE_MPI=intel starts it); MPI=mpich takes Debian's mpicc.mpich
# make check           the tests of each day: every feature, with fixed seeds (check-unit, check-cli, check-mpi, check-ib,
#                      check-slurm, check-lab: one suite)
# make check-all       every test that this machine can run, with seeds by chance: also what has the tag "nightly", which is
#                      what takes long or judges times (soft-RoCE machines, a second Slurm, labs that are measured) and
#                      what shows once more on a sibling what each day shows on one (more presets, ranks, jobs)
# make check TESTS=tests/cli/fit.bats      some files with all of their tests; RG_JOBS=N test files at once (two a core)
# make lint            formatting, cppcheck, shellcheck, spelling, includes point down
# make bench           what takes how long, with goals, beside a bare MPI loop and peers on PATH; exit 1 where one is missed;
#                      TURNS=3, JSON=FILE adds the table to a history
# make performance     what the last bench said, into tests/performance.md
# make accuracy        how well curves and steps are predicted, over tables of measured ones
# make campaigns       random faults on simulated fabrics, and what is said of them (N=100 SEED=1)
# make below           the same of two campaigns, one below the other
# make worlds          the exam: faults in simulated fabrics with the noise of real ones, scored, with limits (N=600 SEED=1
#                      BASELINE=OTHER/build scores another build beside; PAGE=1 puts the tables into tests/accuracy.md)
# make check-faults    campaigns under faults of every kind: culprit, seconds, points lost (FAULT_SECONDS=1200 SEED=1; PAGE=1
#                      puts the table into docs/faults.md; ADD=FILE adds what earlier runs left in it)
# make soak            an hour of the same with sanitizers (SOAK_SECONDS=3600), and make check-threads: ThreadSanitizer
# make mutants         each constant that judges a fabric changed up and down: a unit test must fail
# make bench-gpu       the same and more on a machine with a GPU: tests/gpu/results.md
# make fuzz            libFuzzer on the file readers, FUZZ_SECONDS=60 each (needs clang)
# make tables          the tables of published claims and of --path in jobs/ anew
# make install         PREFIX=/usr/local DESTDIR=, and BINDIR, LIBDIR, INCLUDEDIR, DATADIR, MANDIR, DOCDIR, UNITDIR, each of
#                      which is below PREFIX unless stated; make uninstall with the same words takes it away again
# make BUILD=DIR …      objects and programs in DIR: sources may be read-only
# make site            the pages, with those of all commands, as HTML in the build folder (Sphinx from PyPI)
# make dist            the sources of this commit as a tar file in the build folder
# make release-check   version, NEWS, tag and the tar file of dist, built from nothing, before a release
# make compile_commands.json    how each file is compiled, for clangd
# make SAN=address,undefined check     the same tests under sanitizers, in their own build tree
# make V=1             show the commands
# make aarch64         host code for Grace nodes with aarch64-linux-gnu-gcc, all warnings errors; programs where
#                      AARCH64_ROOT has arm64 libraries (usr/lib/aarch64-linux-gnu)
# make coverage        lines that the unit, cli and mpi tests run, by file, from an own build with gcov
# make CUDA=0|1        GPU kernels built in; 1 when nvcc is there (NCCL and the driver are loaded at run time)

# Stated once, beside the Python package, which is installed without this file.
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' jobs/python/railgauge/__init__.py)
SONAME  := librailgauge.so.0
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR  ?= $(DATADIR)/man
DOCDIR  ?= $(DATADIR)/doc/railgauge
# Units of packages lie below /usr/lib/systemd/system, whatever LIBDIR is.
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL ?= install
SAN     ?=
FUZZ_SECONDS ?= 60
CLANG   ?= $(firstword $(foreach c,clang clang-19 clang-16 clang-14,$(if $(shell command -v $c),$c)) clang)
FUZZ_CC ?= $(CLANG)

comma := ,
empty :=
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)

CUDA_HOME ?= /usr/local/cuda
CUDA_SRC  := $(wildcard kernels/*.cu)
CUDA      ?= $(if $(and $(CUDA_SRC),$(wildcard $(CUDA_HOME)/bin/nvcc)),1,0)
# Ampere to Blackwell, as far as this nvcc knows them (12.0: to 90, 12.8: no 103); CUDA_SM="80 90" for others, CUDA_SMS for
# fewer of those that it knows.
NVCC_SM   := $(if $(filter 1,$(CUDA)),$(shell $(CUDA_HOME)/bin/nvcc --list-gpu-code | sed 's/sm_//'))
CUDA_SMS  ?= 80 86 89 90 100 103 120
CUDA_SM   ?= $(filter $(NVCC_SM),$(CUDA_SMS))
# What a driver reads of PTX goes by the version in it, which nvcc makes its own (13.0: 9.0, driver 580); what the kernels
# need is in 7.0 already.  8.0 is that of CUDA 12.0, driver 525, the oldest that kernels/cuda_api.c takes.
PTX_ISA   ?= 8.0

CFLAGS   ?= -O2 -g
WARN     := -std=c11 -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Werror=switch
# {0} and {NAME} begin a whole struct; clang alone wants each member named.
WARN     += $(if $(findstring clang,$(CC)),-Wno-missing-field-initializers)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
PIC      := -fPIC -fno-semantic-interposition
# Hardening of every object, and of the programs and libraries that are installed (tests/hardened.sh; make HARDEN= HARDEN_LD=
# builds without).  Sanitizers replace the checks of _FORTIFY_SOURCE by their own; level 3 needs gcc 12 or clang and glibc
# 2.35; a level that a distribution's flags state is left.
FORTIFY   = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,$(if $(filter -O1 -O2 -O3 -Os -Og,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(shell $(CC) -O2 -U_FORTIFY_SOURCE \
    -D_FORTIFY_SOURCE=3 -include features.h -dM -E -x c /dev/null 2>/dev/null | grep -q '__USE_FORTIFY_LEVEL 3' && echo 3 || echo 2)))
HARDEN   := $(if $(SAN),,-fstack-protector-strong $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-fcf-protection) $(FORTIFY))
HARDEN_LD := -Wl,-z,relro,-z,now
override CPPFLAGS += -D_GNU_SOURCE -DRG_VERSION='"$(VERSION)"' -Isrc -I.
PKG      ?= pkg-config
JSON_CFLAGS := $(shell $(PKG) --cflags jansson expat yaml-0.1)
JSON_LIBS   := $(shell $(PKG) --libs jansson expat yaml-0.1) -pthread
# A site's MPI (HPC-X, Intel MPI, Cray MPICH, MVAPICH, modules) has mpicc in PATH, and often no file for pkg-config, or one
# of another MPI: mpicc is asked what it would run (-show: Open MPI, MPICH and those made of it), then pkg-config.  On a Cray
# without mpicc the module cray-mpich names its folder.  Intel MPI passes words to the linker one by one (-Xlinker -rpath).
MPI         ?=
MPI_GIVEN   := $(MPI)$(filter command environment,$(origin MPICC))
MPICC       ?= mpicc$(if $(MPI),$(if $(shell command -v mpicc.$(MPI)),.$(MPI)))
HAVE_HWLOC  := $(shell $(PKG) --exists hwloc && echo y)
MPI_SHOW    := $(subst -Xlinker$(empty) ,-Wl$(comma),$(filter-out $(firstword $(shell $(MPICC) -show 2>/dev/null)),$(shell $(MPICC) -show 2>/dev/null)))
MPI_SHOW    := $(or $(if $(filter -l%,$(MPI_SHOW)),$(MPI_SHOW)),$(if $(MPI_GIVEN),,$(if $(CRAY_MPICH_DIR),-I$(CRAY_MPICH_DIR)/include -L$(CRAY_MPICH_DIR)/lib -Wl$(comma)-rpath$(comma)$(CRAY_MPICH_DIR)/lib -lmpi)))
MPI_PKG     := $(if $(MPI_SHOW)$(MPI_GIVEN),,$(firstword $(foreach p,ompi-c mpich,$(if $(shell $(PKG) --exists $p && echo y),$p))))
MPI_FOUND   := $(and $(HAVE_HWLOC),$(MPI_SHOW)$(MPI_PKG))
MPI_CFLAGS  := $(if $(MPI_FOUND),$(filter -I% -D% -pthread,$(MPI_SHOW)) $(shell $(PKG) --cflags $(MPI_PKG) hwloc))
MPI_LIBS    := $(if $(MPI_FOUND),$(filter -L% -l% -Wl% -pthread %.so %.a,$(MPI_SHOW)) $(shell $(PKG) --libs $(MPI_PKG) hwloc))
NO_MPI      := $(if $(MPI_FOUND),,railgauge-probe$(if $(HAVE_HWLOC),: $(MPICC) -show names no MPI$(if $(MPI_GIVEN),,$(comma) and $(PKG) knows none),: $(PKG) finds no hwloc (packages libhwloc-dev$(comma) hwloc-devel)))
# Asked for by name, it must be built.
$(if $(and $(NO_MPI),$(or $(MPI_GIVEN),$(filter %railgauge-probe,$(MAKECMDGOALS))),$(filter-out clean help uninstall,$(or $(MAKECMDGOALS),all))),$(error $(NO_MPI)))

# A room is a folder or a few, and one archive.  An archive is linked before those of the rooms on its left, so that a
# call against this order does not link.
ROOMS    := base kernels topo sources lint noise watch measure matrix fit transport step record place calibrate verdict report export
room_dirs = $(or $(DIRS_$(1)),src/$(1) $(wildcard src/$(1)/*/))
DIRS_kernels := kernels
DIRS_topo    := topo topo/fabrics
DIRS_sources := topo/sources $(wildcard topo/sources/*/)
DIRS_lint    := topo/lint
SRC     := $(foreach d,$(foreach r,$(ROOMS) cmd,$(call room_dirs,$r)),$(wildcard $(d:/=)/*.c))
# The MPI program's own files; everything else builds without MPI.
MPI_SRC := src/probe_main.c $(filter-out %/mpi_used.c,$(sort $(wildcard src/transport/mpi/*.c src/transport/*/transport_*.c))) \
    src/step/replay/replay_mpi.c src/step/replay/replay_player.c \
    topo/sources/gather.c topo/sources/host/hwloc.c
CMD_SRC := src/main.c $(filter src/cmd/%,$(SRC))
# What NCCL loads into jobs (NCCL_PROFILER_PLUGIN): of libc alone.
PLUGIN_SRC := $(filter src/record/plugin/%,$(SRC))
LIB_SRC := $(filter-out $(MPI_SRC) $(CMD_SRC) $(PLUGIN_SRC),$(SRC))

obj   = $(patsubst %,$(BUILD)/%.o,$(1))
bin   = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))
reversed = $(if $(1),$(call reversed,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
LIB   := $(patsubst %,$(BUILD)/lib/%.a,$(call reversed,$(ROOMS)))
# Objects for an MPI with a name are its own.
MPI_BUILD := $(BUILD)$(MPI:%=/mpi-%)
PROBE := $(if $(MPI_FOUND),$(BUILD)/railgauge-probe$(MPI:%=-%))
PLUGIN := $(BUILD)/librailgauge-nccl.so
UNIT  := $(call bin,tests/unit/*.c)
BENCH := $(call bin,tests/bench/*.c)
FUZZ  := $(call bin,tests/fuzz/*.c)
GPU   := $(call bin,tests/gpu/*.c)

# The kernels inside the program: a fat binary, SASS for each of CUDA_SM, and PTX of the first of them.
GPU_IMAGE := $(if $(filter 1,$(CUDA)),$(BUILD)/kernels/image.o)
# Stand-ins for the driver's and NVIDIA's libraries on machines without a GPU: tests/fake/NAME*.c
fake  = $(if $(wildcard tests/fake/$(firstword $(subst ., ,$(1)))*.c),$(BUILD)/fake/lib$(1))
FAKE  := $(foreach l,cuda.so.1 nccl.so.2 cublasLt.so.13 nvidia-ml.so.1 verbs_fake.so.1 threads.so calls.so oom.so powercut.so faulty.so,$(call fake,$l))

# The stand-in for the driver takes any fat binary for ours: without nvcc its first four bytes do.
KERNELS_ANY := $(BUILD)/fake/kernels.fatbin
FAKE += $(if $(GPU_IMAGE),,$(KERNELS_ANY))

all: $(BUILD)/railgauge-calibrate $(PROBE) $(BUILD)/$(SONAME) $(PLUGIN) $(BUILD)/railgauge.pc
	$(if $(NO_MPI),@printf '\n*** not built: %s\n*** nothing can be measured without it: module load an MPI$(comma) or make MPICC=/path/of/mpicc\n\n' '$(NO_MPI)' >&2)
railgauge-probe: $(PROBE)
.PHONY: railgauge-probe

$(BUILD)/railgauge: $(call obj,$(CMD_SRC)) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) -pie $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) -lm

# Another name of the same file, by which it knows its commands.
$(BUILD)/railgauge-calibrate: $(BUILD)/railgauge
	$(Q)ln -sf $(<F) $@

# MPI libraries leak by design: with sanitizers the program's own default is not to report that.
ASAN_QUIET := $(if $(findstring address,$(SAN)),$(BUILD)/tests/asan_probe.c.o)
$(BUILD)/railgauge-probe$(MPI:%=-%): $(MPI_SRC:%=$(MPI_BUILD)/%.o) $(ASAN_QUIET) $(GPU_IMAGE) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) -pie $(HARDEN_LD) $(LDFLAGS) -Wl,--export-dynamic-symbol=fi_fabric -pthread -o $@ $^ $(JSON_LIBS) $(MPI_LIBS) -lm

# One front end for all: the kernels have nothing for one architecture alone, and this takes a third of the time.
NVCC = $(CUDA_HOME)/bin/nvcc -O3 -Werror all-warnings -Isrc -I.
OLDEST_SM = $(firstword $(CUDA_SM))
$(BUILD)/kernels/%.fatbin: kernels/%.cu $(wildcard kernels/*.h) $(BUILD)/flags
	@mkdir -p $(@D) && echo "  NVCC $< (sm_$(subst $(empty) ,$(comma) ,$(CUDA_SM)))"
	$(Q)$(NVCC) -fatbin --threads 2 -gencode 'arch=compute_$(OLDEST_SM),code=[$(subst $(empty) ,$(comma),$(CUDA_SM:%=sm_%))]' -o $@ $<
# Lowered, never raised; that it is still right for the first and the last architecture is the assembler's word.
$(BUILD)/kernels/%.ptx: kernels/%.cu $(wildcard kernels/*.h) $(BUILD)/flags
	@mkdir -p $(@D) && echo "  NVCC $< (PTX $(PTX_ISA) for sm_$(OLDEST_SM) and newer)"
	$(Q)$(NVCC) -ptx -arch=compute_$(OLDEST_SM) -o $@ $<
	$(Q)awk -v isa=$(PTX_ISA) '$$1 == ".version" && $$2 + 0 > isa + 0 { $$2 = isa } { print }' $@ >$@.lower
	$(Q)for a in $(sort $(OLDEST_SM) $(lastword $(CUDA_SM))); do $(CUDA_HOME)/bin/ptxas -arch=sm_$$a -O0 -o /dev/null $@.lower || exit 1; done
	$(Q)mv $@.lower $@

# An archive gives up no member for a weak symbol: the image is linked by name.
$(BUILD)/kernels/image.o: kernels/image.S $(BUILD)/kernels/kernels.fatbin $(BUILD)/kernels/kernels.ptx
	$(Q)$(CC) $(HARDEN) -I$(BUILD)/kernels -c -o $@ $<

$(FAKE): $(wildcard tests/fake/*.h kernels/*.h kernels/*.cu) $(BUILD)/flags
.SECONDEXPANSION:
$(BUILD)/fake/lib%: $$(wildcard tests/fake/$$(firstword $$(subst ., ,$$*))*.c)
	@mkdir -p $(@D) && echo "  FAKE $@"
	$(Q)$(CC) $(compile) -Itests/fake -shared -Wl,-soname,lib$* -o $@ $(filter %.c,$^) -lm

$(KERNELS_ANY):
	@mkdir -p $(@D)
	$(Q)printf '\120\355\125\272' >$@

# The public library: the files that define railgauge_open() and railgauge_job_open(), and what they need.
# It gives memory back when there is no more of it (src/base/mem_held.c).
HELD := malloc calloc realloc free strdup strndup json_loadb json_delete opendir closedir
$(BUILD)/$(SONAME): src/librailgauge.map $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,$< \
	    $(if $(SAN),,-Wl,-z,defs) $(HELD:%=-Wl,--wrap=%) -Wl,--undefined=railgauge_open -Wl,--undefined=railgauge_group_open -Wl,--undefined=railgauge_job_open -o $@ $(LIB) $(JSON_LIBS) -lm
	$(Q)ln -sf $(SONAME) $(BUILD)/librailgauge.so

# It stays in the process: NCCL closes it with the last communicator, and may yet make another.  Its name is that of its
# link among the libraries, or ldconfig would make a link of its own there, which no package owns.
$(PLUGIN): $(call obj,$(PLUGIN_SRC))
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -shared -Wl,-soname,libnccl-profiler-railgauge.so -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs) -o $@ $^ -pthread -ldl
	$(Q)ln -sf $(@F) $(BUILD)/libnccl-profiler-railgauge.so
$(call obj,$(PLUGIN_SRC)): override CFLAGS += -fvisibility=hidden

# A space of a folder is escaped, as readers of .pc files split words like a shell.
escape_pc = $(subst $(empty) ,\\ ,$(1))
$(BUILD)/railgauge.pc: src/railgauge.pc.in $(BUILD)/prefix
	$(Q)sed -e 's|@LIBDIR@|$(call escape_pc,$(LIBDIR))|' -e 's|@INCLUDEDIR@|$(call escape_pc,$(INCLUDEDIR))|' \
	    -e 's|@PREFIX@|$(call escape_pc,$(PREFIX))|' -e 's|@VERSION@|$(VERSION)|' $< >$@

# ROOM: its archive.
define archive
$(BUILD)/lib/$(1).a: $(call obj,$(filter $(foreach d,$(call room_dirs,$(1)),$(wildcard $(d:/=)/*.c)),$(LIB_SRC)))
	@mkdir -p $$(@D) && echo "  AR   $$@"
	$$(Q)$$(RM) $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call archive,$r)))

$(UNIT): $(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.c.o $(GPU_IMAGE) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(JSON_LIBS) -lm

$(GPU): $(BUILD)/tests/gpu/%: $(BUILD)/tests/gpu/%.c.o $(GPU_IMAGE) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) -lm

$(BENCH): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.c.o $(call obj,$(filter src/transport/% topo/%,$(MPI_SRC))) $(GPU_IMAGE) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) $(MPI_LIBS) -lm

FUZZFLAGS := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
# An archive, so that only what a reader needs is linked: parts of the MPI program need the rest of it.
$(BUILD)/fuzz/librg.a: $(patsubst %,$(BUILD)/fuzz/%.o,$(LIB_SRC))
	$(Q)$(RM) $@ && $(AR) rcs $@ $^
$(FUZZ): $(BUILD)/tests/fuzz/%: $(BUILD)/fuzz/tests/fuzz/%.c.o $(BUILD)/fuzz/librg.a
	@mkdir -p $(@D) && echo "  LINK $@"
	$(Q)$(FUZZ_CC) $(FUZZFLAGS) -fsanitize=fuzzer -o $@ $^ $(JSON_LIBS) -lm

compile = $(WARN) $(CFLAGS) $(SANFLAGS) $(HARDEN) $(PIC) $(CPPFLAGS) $(JSON_CFLAGS)
$(MPI_SRC:%=$(MPI_BUILD)/%.o) $(call obj,$(wildcard tests/bench/*.c)): override CPPFLAGS += $(MPI_CFLAGS)
$(MPI_SRC:%=$(MPI_BUILD)/%.o): $(MPI_BUILD)/mpi_flags
$(BUILD)/src/base/file.c.o: override CPPFLAGS += -DRG_DATADIR='"$(DATADIR)/railgauge"'
$(BUILD)/src/base/file.c.o: $(BUILD)/prefix
# Test programs are compiled as often as they run: half the time of -O2.
$(UNIT:%=%.c.o): override CFLAGS := $(CFLAGS:-O2=-Og)
$(BUILD)/tests/unit/%_abi.c.o: override CPPFLAGS += -isystem $(CUDA_HOME)/include
$(BUILD)/%.c.o: %.c $(BUILD)/flags
	@mkdir -p $(@D) && echo "  CC   $<"
	$(Q)$(CC) $(compile) -MMD -MP -c -o $@ $<
ifneq ($(MPI),)
$(MPI_BUILD)/%.c.o: %.c $(BUILD)/flags
	@mkdir -p $(@D) && echo "  CC   $< ($(MPI))"
	$(Q)$(CC) $(compile) -MMD -MP -c -o $@ $<
endif
$(BUILD)/fuzz/%.c.o: %.c
	@mkdir -p $(@D) && echo "  CC   $< (fuzz)"
	$(Q)$(FUZZ_CC) $(WARN) $(FUZZFLAGS) -fsanitize=fuzzer-no-link $(CPPFLAGS) $(JSON_CFLAGS) \
	    -DRG_DATADIR='"$(DATADIR)/railgauge"' -MMD -MP -c -o $@ $<

# The page's style and script are in it as they are.
$(BUILD)/src/report/page/page.c.o $(BUILD)/fuzz/src/report/page/page.c.o: src/report/page/page.css src/report/page/page.js

# What tests compile with by themselves.
warnings:
	@echo $(WARN) $(JSON_CFLAGS) $(MPI_CFLAGS)
.PHONY: warnings

# Files that change only when the compiler or its flags (or the prefix) do, so that a change rebuilds.
FLAGS_TEXT := $(CC) $(CFLAGS) $(WARN) $(SANFLAGS) $(HARDEN) $(PIC) $(CPPFLAGS) CUDA=$(CUDA) $(CUDA_SM) $(PTX_ISA)
remember = mkdir -p $(@D) && echo '$(subst ','\'',$(1))' | cmp -s - $@ || echo '$(subst ','\'',$(1))' >$@
$(BUILD)/flags: FORCE
	@$(call remember,$(FLAGS_TEXT))
$(MPI_BUILD)/mpi_flags: FORCE
	@$(call remember,$(MPI_CFLAGS))
$(BUILD)/prefix: FORCE
	@$(call remember,$(PREFIX) $(LIBDIR) $(INCLUDEDIR) $(DATADIR))

# --- tests: TAP from cmocka programs, bats files and scripts, side by side ---
SUITE_unit := $(UNIT) $(wildcard tests/unit/*.sh)
SUITE_cli  := $(wildcard tests/walls.sh tests/cli/*.bats tests/install.bats tests/bad/run.sh)
SUITE_mpi  := $(wildcard tests/mpi/*.bats)
SUITE_lab  := $(wildcard tests/lab/*.bats)
SUITE_slurm := $(wildcard tests/slurm/*.bats)
SUITE_ib   := $(wildcard tests/ib/*.bats)
SUITE_verbs := $(wildcard tests/verbs/*.bats)
SUITES     := unit cli mpi ib slurm lab verbs
# All of this suite is nightly.
check-verbs: ALL := 1
suite = RG_BUILD='$(abspath $(BUILD))' RG_SAN='$(SAN)' LD_LIBRARY_PATH='$(abspath $(BUILD))/fake:$(LD_LIBRARY_PATH)' \
    RG_ALL='$(ALL)' RG_CUDA_SM='$(CUDA_SM)' RG_PTX_ISA='$(PTX_ISA)' $(if $(GPU_IMAGE),,RAILGAUGE_KERNELS='$(abspath $(KERNELS_ANY))') MAKEFLAGS= perl tests/suite.pl $(1)

# TESTS: some files alone, as tests/cli/fit.bats or build/tests/unit/mem, with all of their tests
ALL := $(if $(TESTS),1)
check-all covered: ALL := 1
check check-all: all $(or $(filter $(BUILD)/tests/unit/%,$(TESTS)),$(if $(TESTS),,$(UNIT))) $(FAKE) $(GPU)
	$(Q)$(call suite,$(or $(TESTS),$(foreach s,$(SUITES),$(SUITE_$s))))
check-unit: $(UNIT) $(FAKE) $(PLUGIN)
check-cli check-mpi check-ib check-slurm check-lab check-verbs: all $(FAKE) $(GPU)
$(SUITES:%=check-%): check-%:
	$(Q)$(if $(strip $(SUITE_$*)),$(call suite,$(SUITE_$*)),echo "suite $*: no tests"; exit 1)

bench-gpu: all $(GPU)
	$(Q)RG_BUILD='$(abspath $(BUILD))' tests/gpu/run.sh --page tests/gpu/results.md

# Campaigns under faults, for FAULT_SECONDS; PAGE=1 puts the table into docs/faults.md.
FAULT_SECONDS ?= 1200
check-faults: all $(FAKE)
	$(Q)RG_BUILD='$(abspath $(BUILD))' RG_SAN='$(SAN)' python3 tests/faults.py --seconds $(FAULT_SECONDS) $(if $(SEED),--seed $(SEED)) \
	    $(if $(ADD),--add '$(ADD)') $(if $(PAGE),--page docs/faults.md)

# The libraries that have threads, or are loaded into programs that do, under ThreadSanitizer.  The plugin's thread has a
# table of descriptors of its own, which ThreadSanitizer takes for that of the others.
TSAN_TESTS = watch profiler api
check-threads:
	$(Q)$(MAKE) --no-print-directory SAN=thread CUDA=0 $(TSAN_TESTS:%=build-thread/tests/unit/%) build-thread/librailgauge-nccl.so build-thread/librailgauge.so.0
	$(Q)printf 'race:%s\n' look_at_size write_at >build-thread/own-descriptors.supp
	$(Q)code=0; for t in $(TSAN_TESTS); do RG_BUILD=build-thread RG_SAN=thread \
	    TSAN_OPTIONS=die_after_fork=0:suppressions=build-thread/own-descriptors.supp build-thread/tests/unit/$$t || code=1; done; exit $$code

# An hour of faults with sanitizers, on demand.
SOAK_SECONDS ?= 3600
soak: check-threads
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined CUDA=0 FAULT_SECONDS=$(SOAK_SECONDS) check-faults

below: all
	$(Q)RG_BUILD='$(abspath $(BUILD))' python3 tests/random/below.py -n $(or $(N),100) --seed $(or $(SEED),1)

campaigns: all
	$(Q)RG_BUILD='$(abspath $(BUILD))' python3 tests/random/campaigns.py -n $(or $(N),100) --seed $(or $(SEED),1)

worlds: all
	$(Q)code=0; RG_BUILD='$(abspath $(BUILD))' python3 tests/random/worlds.py -n $(or $(N),600) --seed $(or $(SEED),1) --compare 4 \
	    --check 50 --limits --markdown $(BUILD)/worlds.md $(if $(BASELINE),--baseline '$(BASELINE)') || code=$$?; \
	$(if $(PAGE),sed -i -e '/^<!-- worlds -->/$(comma)/^<!-- end of worlds -->/{//!d}' -e '/^<!-- worlds -->/r $(BUILD)/worlds.md' tests/accuracy.md;) \
	exit $$code

# Unit tests with an object of another constant before the library.
MUTANT_TESTS = noise_edges epochs compare history accept stats classes fit_edges
mutants: $(filter $(MUTANT_TESTS:%=$(BUILD)/tests/unit/%),$(UNIT)) $(LIB)
	$(Q)RG_BUILD='$(abspath $(BUILD))' RG_COMPILE='$(CC) $(compile)' RG_LIBS='$(LIB:$(BUILD)/%=$(abspath $(BUILD))/%) $(SANFLAGS) $(LDFLAGS) -lcmocka $(JSON_LIBS) -lm' python3 tests/random/mutants.py $(MUTANTS)

bench: all $(BENCH)
	$(Q)code=0; for b in tests/bench/bench.sh tests/bench/pair.sh; do RG_BUILD='$(abspath $(BUILD))' JSON='$(JSON)' ./$$b || code=$$?; done; exit $$code

# What the last bench of this build said, into its page.
performance:
	$(Q)test -s $(BUILD)/bench.tsv -a -s $(BUILD)/pair.tsv || { echo 'nothing was measured: make bench' >&2; exit 66; }
	$(Q)awk -F'\t' 'FNR == 1 && NR > 1 {next} {gsub(/\|/, "\\|"); print "| " $$1 " | " $$4 " | " $$2 " " $$3 " | " $$5 " | " $$6 " | " $$7 " |"} \
	    NR == 1 {print "|---|---|---|---|---|---|"}' $(BUILD)/bench.tsv $(BUILD)/pair.tsv | sed '1s/value unit/ours/; s/| - /|  /g' >$(BUILD)/performance.md
	$(Q)sed -i -e '/^<!-- bench -->/,/^<!-- end of bench -->/{//!d}' -e '/^<!-- bench -->/r $(BUILD)/performance.md' tests/performance.md

accuracy: all $(BENCH)
	$(Q)code=0; for b in tests/bench/curves.sh tests/bench/steps.sh; do RG_BUILD='$(abspath $(BUILD))' ./$$b || code=$$?; done; \
	$(BUILD)/tests/bench/published || code=$$?; exit $$code

# Every target runs; those that found something are named at the end.  Seeds: tests/fuzz/seeds/TARGET, and the files that
# seeds.list names for it.
fuzz: $(FUZZ)
	$(Q)red=; for f in $(notdir $(FUZZ)); do mkdir -p $(BUILD)/corpus/$$f && echo "  FUZZ $$f" && \
	    sed -n "s/^$$f //p" tests/fuzz/seeds.list | xargs -r cp -t $(BUILD)/corpus/$$f && \
	    $(BUILD)/tests/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -verbosity=0 \
	    -dict=tests/fuzz/$$(case $$f in plan | points | compute | demand | batch | scaling | score | ladder) echo tsv ;; nccl_*) echo nccl ;; ibnet) echo ibnet ;; nodes_* | placement) echo nodes ;; slurm* | self_report) echo slurm ;; *) echo json ;; esac).dict \
	    -print_final_stats=1 -artifact_prefix=$(BUILD)/$$f- $(BUILD)/corpus/$$f $$(ls -d tests/fuzz/seeds/$$f 2>/dev/null) || red="$$red $$f"; done; \
	[ -z "$$red" ] || { echo "fuzz: found something:$$red" >&2; exit 1; }

C_FILES  := $(shell git ls-files '*.c' '*.h' 2>/dev/null || find src topo tests -name '*.[ch]')
SH_FILES := $(wildcard .ci/run jobs/*.sh jobs/health/*.sh tests/*.sh tests/*/*.sh)
# Names of ours, abbreviations of data sets, the Fo of manual pages and \nin of awk: not misspelt.
WORDS    := nd,rovider,nin,seach,upto,thi,toom,oom,fo,shwo,mesure,whats
# The manual: a page for each command, made of its rows and the sections of the sources.
PAGE_SOURCES := src/railgauge.1 src/railgauge-calibrate.1
PAGES := $(BUILD)/man/railgauge.1
lint: all $(PAGES)
	$(Q)clang-format --dry-run -Werror $(C_FILES)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,performance,portability \
	    --suppress=missingInclude --suppress=unknownMacro -D_GNU_SOURCE -DRG_VERSION='""' -DRG_DATADIR='""' -Isrc -I. $(filter %.c,$(C_FILES))
	$(Q)shellcheck -x $(SH_FILES)
	$(Q)if command -v $(CLANG) >/dev/null; then $(CLANG) -fsyntax-only -Werror $(compile) -Wno-missing-field-initializers $(MPI_CFLAGS) -DRG_DATADIR='""' \
	    -Itests/fake $(filter-out %_abi.c,$(filter %.c,$(C_FILES))); else echo "clang is not installed: its warnings not checked"; fi
	$(Q)mandoc -T lint -W warning $(MAN) $(BUILD)/man/*.1
	$(Q)python3 tests/words.py
	$(Q)RG_BUILD=$(BUILD) tests/walls.sh >$(BUILD)/walls || { grep -v 'one client:' $(BUILD)/walls; exit 1; }
	$(Q)tests/walls.sh --raised
	$(Q)$(if $(SAN),true,tests/hardened.sh $(BUILD)/railgauge $(PROBE) $(BUILD)/$(SONAME) $(PLUGIN))
	$(Q)CC='$(CC)' tests/doors.sh
	$(Q)python3 tests/params.py
	$(Q)if command -v codespell >/dev/null; then codespell --skip="*.ipynb" --ignore-words-list=$(WORDS) src topo jobs tests/*/*.c *.md jobs/*.md docs/*.md tests/*.md Makefile; \
	    else echo "codespell is not installed: spelling not checked"; fi
	@echo "lint: clean"

# Tables that this build prints, into the pages between their comments.
tables: all
	$(Q)$(BUILD)/railgauge discover --list-paths >$(BUILD)/paths.md
	$(Q)sed -i -e '/^<!-- paths -->/,/^<!-- end of paths -->/{//!d}' -e '/^<!-- paths -->/r $(BUILD)/paths.md' docs/gpus.md
	$(Q)$(BUILD)/railgauge-calibrate claims all --markdown >$(BUILD)/cases.md || [ $$? = 1 ]
	$(Q)sed -i -e '/^<!-- cases -->/,/^<!-- end of cases -->/{//!d}' -e '/^<!-- cases -->/r $(BUILD)/cases.md' jobs/training/claims.md

# --- install: folders may have spaces ---
MAN     := $(wildcard src/*.[1-8])
MANUAL   = $(filter-out $(PAGE_SOURCES),$(MAN)) $(wildcard $(BUILD)/man/*.1)
DATA    := $(wildcard $(addsuffix /*.json,topo/fabrics topo/gpus topo/worlds topo/schema src/schema jobs/training jobs/training/models jobs/training/cases jobs/limits) plots/*.gp plots/*.tsv jobs/slurm/* jobs/kubernetes/* jobs/health/* jobs/grafana/* jobs/scheduler/* jobs/reframe/*.py) jobs/training/steps.tsv jobs/repairs.json jobs/mpirun.sh jobs/Containerfile $(wildcard $(addprefix jobs/python/,pyproject.toml example.ipynb railgauge/*.py railgauge/py.typed setup.py README.md))
$(PAGES): src/pages.awk $(PAGE_SOURCES) $(BUILD)/railgauge-calibrate
	$(Q)$(RM) -r $(@D) && mkdir -p $(@D)
	$(Q)for p in railgauge railgauge-calibrate; do $(BUILD)/$$p --help | sed -n "s/^  \([a-z-]*\)  *\(.*\)/$$p	\1	help	\2/p"; \
	    done | while IFS='	' read -r p c what help; do [ "$$p $$c" != "railgauge-calibrate completion" ] || continue; \
	    printf '%s\t%s\thelp\t%s\n' "$$p" "$$c" "$$help"; $(BUILD)/$$p $$c --help=tsv | sed "s/^/$$p	$$c	/"; done >$(BUILD)/rows.tsv
	$(Q)awk -v dir=$(@D) -f src/pages.awk $(BUILD)/rows.tsv $(PAGE_SOURCES)
# PROGRAM:SHELL:FILE below DATADIR
COMPLETIONS := $(foreach p,railgauge railgauge-calibrate,$p:bash:bash-completion/completions/$p \
    $p:zsh:zsh/site-functions/_$p $p:fish:fish/vendor_completions.d/$p.fish)
LIBRARY  = librailgauge.so.$(VERSION)
UNITS   := $(wildcard jobs/health/*.service jobs/health/*.timer)
# FOLDER/NAME=FILE: what lies where.  NCCL looks for its plugins among the libraries, where the plugin has a link.
PLACED   = $(foreach f,$(BUILD)/railgauge $(PROBE),bin/$(notdir $f)=$f) lib/$(LIBRARY)=$(BUILD)/$(SONAME) \
    lib/railgauge/$(notdir $(PLUGIN))=$(PLUGIN) lib/pkgconfig/railgauge.pc=$(BUILD)/railgauge.pc include/railgauge.h=src/railgauge.h \
    $(foreach f,$(MANUAL),man/man$(subst .,,$(suffix $f))/$(notdir $f)=$f) $(foreach f,$(DATA),data/$f=$f) \
    $(foreach f,LICENSE README.md NEWS.md $(wildcard docs/*.md),doc/$(notdir $f)=$f) $(foreach f,$(UNITS),unit/$(notdir $f)=$f) \
    $(foreach c,$(COMPLETIONS),share/$(lastword $(subst :, ,$c))=$(BUILD)/completions/$(notdir $(lastword $(subst :, ,$c))))
LINKS    = bin/railgauge-calibrate=railgauge lib/$(SONAME)=$(LIBRARY) lib/librailgauge.so=$(SONAME) \
    lib/libnccl-profiler-railgauge.so=railgauge/$(notdir $(PLUGIN))
# In shell: set "at" to the path of FOLDER/NAME.
AT = at() { case $$1 in bin/*) at="$(BINDIR)" ;; lib/*) at="$(LIBDIR)" ;; include/*) at="$(INCLUDEDIR)" ;; man/*) at="$(MANDIR)" ;; \
    data/*) at="$(DATADIR)/railgauge" ;; share/*) at="$(DATADIR)" ;; doc/*) at="$(DOCDIR)" ;; unit/*) at="$(UNITDIR)" ;; esac; \
    at="$(DESTDIR)$$at/$${1\#*/}"; }
# Scripts and units name the installed program by its path.
NAMED    = $(foreach f,$(UNITS),unit/$(notdir $f)) $(addprefix data/,$(filter-out %.yaml,$(wildcard jobs/health/*)) jobs/slurm/job_submit.lua)
install: all $(PAGES)
	$(Q)mkdir -p $(BUILD)/completions && for c in $(COMPLETIONS); do p=$${c%%:*} c=$${c#*:}; \
	    $(BUILD)/$$p completion $${c%%:*} >$(BUILD)/completions/$${c##*/} || exit 1; done
	$(Q)$(AT); set -e; for f in $(PLACED); do at $${f%%=*}; f=$${f#*=}; mode=644; [ ! -x $$f ] || mode=755; $(INSTALL) -D -m $$mode $$f "$$at"; done; \
	    for f in $(LINKS); do at $${f%%=*}; ln -sfn $${f#*=} "$$at"; done; \
	    for f in $(NAMED); do at $$f; sed -i -e 's|/usr/local/bin|$(BINDIR)|' -e 's|/usr/local/share|$(DATADIR)|' "$$at"; done
	@if [ -n '$(DESTDIR)' ]; then :; elif ldconfig -v 2>/dev/null | grep -q '^$(LIBDIR):'; then \
	    ldconfig 2>/dev/null || echo 'run ldconfig as root: programs find $(SONAME) then'; \
	else echo 'programs find $(SONAME) with LD_LIBRARY_PATH=$(LIBDIR)'; fi
uninstall: $(PAGES)
	$(Q)$(AT); for f in $(PLACED) $(LINKS); do at $${f%%=*}; $(RM) "$$at" || exit 1; done
	$(RM) -r "$(DESTDIR)$(BINDIR)"/railgauge-probe-* "$(DESTDIR)$(DATADIR)/railgauge"

# The pages as a site below $(BUILD)/site, which a browser reads from the folder: with the links between the sources' folders.
SITE_PAGES := $(wildcard docs/*.md) CONTRIBUTING.md NEWS.md tests/accuracy.md tests/performance.md
site: all
	$(Q)$(RM) -r $(BUILD)/site && mkdir -p $(BUILD)/site/src
	$(Q)cp -r --parents $(SITE_PAGES) $(wildcard plots/gallery) $(BUILD)/site/src && mv $(BUILD)/site/src/docs/index.md $(BUILD)/site/src
	$(Q)python=$$(tests/venv.sh site sphinx furo myst-parser latex2mathml) && \
	    RAILGAUGE_VERSION='$(VERSION)' RAILGAUGE_BUILD='$(abspath $(BUILD))' "$$python" -m sphinx -q -W --keep-going -c docs $(BUILD)/site/src $(BUILD)/site/html
	@echo $(BUILD)/site/html/index.html

# The sources of this commit, for a release.
dist:
	@mkdir -p $(BUILD)
	git archive --prefix=railgauge-$(VERSION)/ -o $(BUILD)/railgauge-$(VERSION).tar.gz HEAD
	@echo $(BUILD)/railgauge-$(VERSION).tar.gz

# What has to be true before a version is given away.
release-check: all
	$(Q)tests/release.sh '$(VERSION)'

# For clangd and other readers of C.
quote_json = $(subst ",\",$(subst \,\\,$(1)))
compile_commands.json: FORCE
	$(Q){ echo '['; for f in $(SRC) $(wildcard src/*.c tests/*/*.c); do \
	    printf '%s{"directory": "%s", "file": "%s", "command": "%s -c %s"}\n' "$$comma" "$(CURDIR)" $$f \
	        '$(subst ','\'',$(call quote_json,$(CC) $(compile) $(MPI_CFLAGS) -DHAVE_MPI -DRG_DATADIR='"$(DATADIR)/railgauge"'))' $$f; \
	    comma=,; done; echo ']'; } >$@

help:
	@sed -n '/^$$/q; s/^# //p' Makefile
clean:
	$(RM) -r build build-*

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all check check-all $(SUITES:%=check-%) check-faults check-threads soak lint bench performance accuracy below campaigns worlds mutants bench-gpu fuzz tables install uninstall site dist release-check help clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:

# --- the MPI program under SimGrid, from the same sources (tests/mpi/smpi.bats) ---
# Each simulated rank loads a copy of its file.
# Only what asks for time or sleeps is compiled anew, and the table of transports; the rest is this build's library.
SMPI_LIB = src/measure/transports/transport.c $(shell grep -lE 'clock_gettime|gettimeofday|nanosleep|usleep' $(filter src/base/% src/measure/% src/watch/% src/transport/% src/record/%,$(LIB_SRC)))
$(BUILD)/smpi/librg.a: $$(patsubst %,$(BUILD)/smpi/%.o,$$(SMPI_LIB))
	$(Q)$(RM) $@ && $(AR) rcs $@ $^
$(BUILD)/railgauge-probe-smpi: $(MPI_SRC:%=$(BUILD)/smpi/%.o) $(BUILD)/smpi/librg.a $(LIB)
	@echo "  LINK $@"
	$(Q)smpicc -Wl,--strip-debug -o $@ $^ $(JSON_LIBS) $(shell $(PKG) --libs hwloc) -lm
$(BUILD)/smpi/%.c.o: %.c
	@mkdir -p $(@D) && echo "  SMPI $<"
	$(Q)smpicc $(WARN) -O0 -g -fPIC -DSMPI_NO_OVERRIDE_MALLOC $(CPPFLAGS) -DHAVE_MPI -DRG_DATADIR='"$(DATADIR)/railgauge"' $(JSON_CFLAGS) $(shell $(PKG) --cflags hwloc) -MMD -MP -c -o $@ $<

# --- host code for aarch64 (Grace), in a build tree of its own (tests/aarch64.sh) ---
# Headers of libraries are those of this machine: they declare the same on both.
AARCH64_CC   ?= aarch64-linux-gnu-gcc
AARCH64_ROOT ?= /
AARCH64_LIB  := $(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu
# Which of the libraries in -l words are not there for arm64.
AARCH64_LACKS = $(strip $(foreach l,$(patsubst -l%,%,$(filter -l%,$(1))),$(if $(wildcard $(AARCH64_LIB)/lib$l.so),,lib$l)))
CROSS = $(MAKE) BUILD=build-aarch64 CC=$(AARCH64_CC) AR=$(AARCH64_CC:gcc=ar) \
    CFLAGS='$(CFLAGS) -Werror -idirafter /usr/include -idirafter /usr/include/$(shell $(CC) -print-multiarch)' \
    LDFLAGS='-L$(AARCH64_LIB) -Wl,-rpath-link,$(AARCH64_LIB)'
aarch64:
	+$(Q)$(CROSS) objects
	+$(Q)$(if $(call AARCH64_LACKS,$(JSON_LIBS)),echo "not linked: no $(call AARCH64_LACKS,$(JSON_LIBS)) below $(AARCH64_LIB)",$(CROSS) build-aarch64/railgauge)
	+$(Q)$(if $(PROBE),$(if $(call AARCH64_LACKS,$(JSON_LIBS) $(MPI_LIBS)),true,$(CROSS) build-aarch64/railgauge-probe))
objects: $(call obj,$(CMD_SRC) $(LIB_SRC) $(PLUGIN_SRC) $(if $(MPI_FOUND),$(MPI_SRC)))
.PHONY: aarch64 objects

# --- coverage: an own tree with gcov's counters, the suites over it, a table, floors ---
# What installs, cross-compiles or starts simulators says nothing about lines; neither do lint-like checks.
COVER_LEAVE := tests/install.bats tests/walls.sh tests/cli/aarch64.bats tests/cli/jobs.bats tests/mpi/smpi.bats tests/mpi/trixie.bats
COVER       ?= $(filter-out $(COVER_LEAVE),$(foreach s,unit cli mpi,$(SUITE_$s)))
COVER_FLOOR ?= src/transport/nccl/transport_nccl.c=90 src/transport/nccl/nccl_session.c=90 src/transport/nccl/nccl_check.c=90 src/transport/verbs/*.c=90 topo/sources/host/nvml*.c=90
COVER_EXIT  := $(CURDIR)/build-coverage/exit.o
coverage:
	$(Q)mkdir -p build-coverage && find build-coverage -name '*.gcda' -delete
	$(Q)$(CC) -fPIC -c -o $(COVER_EXIT) tests/coverage.c
	+$(Q)$(MAKE) BUILD=build-coverage CFLAGS='-O0 -g --coverage' LDFLAGS='--coverage -Wl,--wrap=_exit $(COVER_EXIT)' covered; \
	    tests=$$?; tests/coverage.sh build-coverage $(COVER_FLOOR) && exit $$tests
covered: all $(UNIT) $(FAKE) $(GPU)
	$(Q)$(call suite,$(COVER))
.PHONY: coverage covered
