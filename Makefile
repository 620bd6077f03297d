# make                 build; CUDA is used when nvcc is found (CUDA=0|1 decides)
# make check           every test that this machine can run
# make lint            formatting, cppcheck, shellcheck, spelling
# make bench           ratios against a bare MPI loop, stop rule, look-ups
# make install         PREFIX=/usr/local DESTDIR=
# make SAN=address,undefined check     the same tests under sanitizers, in their own build tree
# make V=1             show the commands

VERSION := 0.1.0
SONAME  := librailgauge.so.0
PREFIX  ?= /usr/local
CUDA_HOME ?= /usr/local/cuda
CUDA    ?= $(if $(wildcard $(CUDA_HOME)/bin/nvcc),1,0)
SAN     ?=

comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)

CFLAGS   ?= -O2 -g
WARN     := -std=c11 -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CPPFLAGS += -D_GNU_SOURCE -DRG_VERSION='"$(VERSION)"' -DRG_DATADIR='"$(PREFIX)/share/railgauge"' -Isrc -I.
PKG      := pkg-config
JSON_CFLAGS := $(shell $(PKG) --cflags jansson)
JSON_LIBS   := $(shell $(PKG) --libs jansson)
MPI_CFLAGS   = $(shell $(PKG) --cflags ompi-c hwloc)
MPI_LIBS     = $(shell $(PKG) --libs ompi-c hwloc)

# The MPI program's own files; everything else builds without MPI.
MPI_SRC := src/probe/probe_main.c src/probe/transport_mpi.c src/probe/world_mpi.c topo/gather.c topo/hwloc.c
CMD_SRC := src/main.c $(wildcard src/cmd/*.c)
LIB_SRC := $(filter-out $(MPI_SRC),$(wildcard src/base/*.c src/probe/*.c src/cost/*.c src/step/*.c src/emit/*.c topo/*.c))

obj  = $(patsubst %,$(BUILD)/%.o,$(1))
LIB := $(BUILD)/librg.a
TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*.c))

all: $(BUILD)/railgauge $(BUILD)/railgauge-probe $(BUILD)/$(SONAME)

$(BUILD)/railgauge: $(call obj,$(CMD_SRC)) $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) -lm

# transport.c holds the one table of transports; the MPI program's copy knows more of them.
$(BUILD)/railgauge-probe: $(call obj,$(wildcard $(MPI_SRC))) $(BUILD)/src/probe/transport.mpi.o $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(JSON_LIBS) $(MPI_LIBS) -lm

$(BUILD)/$(SONAME): $(patsubst %,$(BUILD)/%.pic.o,$(filter src/base/% src/cost/% topo/%,$(LIB_SRC)))
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -o $@ $^ $(JSON_LIBS) -lm
	$(Q)ln -sf $(SONAME) $(BUILD)/librailgauge.so

$(LIB): $(call obj,$(LIB_SRC))
	@echo "  AR   $@"
	$(Q)$(RM) $@ && $(AR) rcs $@ $^

$(TESTS): $(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.c.o $(LIB)
	@echo "  LINK $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(JSON_LIBS) -lm

$(call obj,$(MPI_SRC)): CPPFLAGS += $(MPI_CFLAGS)
$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D) && echo "  CC   $<"
	$(Q)$(CC) $(WARN) $(CFLAGS) $(SANFLAGS) $(CPPFLAGS) $(JSON_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/%.c.pic.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(WARN) $(CFLAGS) $(SANFLAGS) -fPIC -fvisibility=hidden $(CPPFLAGS) $(JSON_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/src/probe/transport.mpi.o: src/probe/transport.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(WARN) $(CFLAGS) $(SANFLAGS) $(CPPFLAGS) -DHAVE_MPI -MMD -MP -c -o $@ $<

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all check lint bench install clean
.SECONDARY:
.DELETE_ON_ERROR:
