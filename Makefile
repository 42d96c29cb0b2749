# Everything ambar's developers run. All outputs are in ./.venv, ./target and ./out.
#
#   make demo       environment, build, convert a RAMSES output, compare load times, draw it
#   make gallery    draw docs/gallery.md and the picture of the README
#   make test       all tests, those in Python by two processes: make test JOBS=4
#   make docs       the documentation site, in target/site; needs doxygen (apt-get) for the pages on C
#   make lint       formatting, lints, types, the stub of the extension, layers of the Rust and Python modules
#   make bench-env  the benchmarks and what they measure ambar against, into .venv: see benchmarks/README.md
#   make bench      the RAMSES study: make bench RAMSES=path/to/output_00300
#   make peers      what `ambar-bench parallel` measures ambar against, by apt-get (root) and from sources
#   make campaign   the long tests: crashes, damage, random inputs: make campaign SECONDS=600 SEED=7
#   make servers    MinIO, the Versity gateway and Azurite into target/servers, for make campaign: Go and npm
#   make memcheck   unit tests and C programs under valgrind: make memcheck SECONDS=600
#   make deny       licences, sources and advisories of the Rust crates, by cargo-deny
#   make install    the library for C, C++ and Fortran: make install PREFIX=$HOME/.local
#   make wheel      a wheel with this library, in ./out/wheels; make symbols: and its symbols, in ./out/symbols

SHELL := /bin/bash
PYTHON ?= python3
PREFIX ?= /usr/local
JOBS ?= 2
RAMSES ?= tests/data/ramses/gravpart_small/output_00002
BIN := .venv/bin
HDF5_PLUGIN := python/ambar/plugins/libh5z_ambar.so

# Programs that tests start must not inherit the job server of `make -j`.
unexport MAKEFLAGS
export PATH := $(PATH):$(HOME)/.cargo/bin
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export MPLCONFIGDIR := $(CURDIR)/target/matplotlib

.PHONY: demo docs gallery test lint bench-env bench peers campaign memcheck deny install clean
.DELETE_ON_ERROR:

# Without object stores, which bring more than half of the crates, and without the filter for HDF5.
demo: NEEDS := --extras cli,plot --no-default-features
demo: extension
	$(BIN)/python examples/demo.py

gallery: NEEDS := --extras cli,plot,mesh
gallery: build
	$(BIN)/python examples/plot_commands.py

# Warnings are errors: links that lead nowhere, names without a page. What the last build made of removed pages
# and names goes first.
# Open MPI starts the ranks of an example as root, as in containers, and more of them than cores.
docs: export OMPI_ALLOW_RUN_AS_ROOT := 1
docs: export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
docs: export OMPI_MCA_rmaps_base_oversubscribe := 1
docs: build
	rm -rf target/site docs/reference/api docs/examples
	mkdir -p target
	doxygen docs/Doxyfile
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs $(JOBS) -c docs . target/site

# Parts run side by side under `make -j2`, as in continuous integration.
.PHONY: lint-rust lint-python test-python test-rust test-programs
lint test docs: NEEDS := --group lint # which includes the groups test and docs
lint: lint-rust lint-python

# With other variables than those of maturin, cargo would build pyo3 and the extension again for each of the two.
lint-rust: build
	cargo fmt --all --check
	set -- "$${CARGO_TARGET_DIR:-$(CURDIR)/target}"/maturin/pyo3-config-*.txt; \
		export PYO3_CONFIG_FILE="$$1" PYO3_BUILD_EXTENSION_MODULE=1; \
		cargo clippy --release --locked --workspace --all-targets -- -D warnings

lint-python: build
	$(BIN)/python .ci/words.py
	$(BIN)/python .ci/imports.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python .ci/documentation.py
	$(BIN)/stubtest ambar._core --mypy-config-file pyproject.toml --allowlist .ci/stubtest-allowlist.txt

# Tests that build programs in ./target, or start many processes: after the others, one after the other.
PROGRAMS := $(addprefix tests/,native parallel reliability/test_campaigns.py project/test_wheel.py \
	benchmarks/test_bench_amr.py benchmarks/test_bench_parallel.py formats/test_amrex_in_situ.py)

test: test-python test-rust test-programs

test-python: build
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(PROGRAMS:%=--ignore %)

# The same random inputs in every run; `make campaign` tries others. The second command builds what
# `make install` of test-programs needs, while the other core has work.
test-rust: build
	PROPTEST_RNG_SEED=1 cargo test --release --locked --workspace
	cargo build --release --locked -p ambar-capi

test-programs: test-python test-rust
	$(BIN)/python -m pytest $(PROGRAMS)

bench-env: NEEDS := --extras cli
bench-env: build
	$(BIN)/python -m pip install --quiet --editable benchmarks

bench: bench-env
	$(BIN)/ambar-bench ramses $(RAMSES)

PEERS := libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libnetcdf-mpi-dev libpnetcdf-dev pkg-config cmake
# ADIOS2 with MPI and BP5, and without what needs other libraries.
ADIOS2_WITHOUT := Python Fortran SST HDF5 DataMan BZip2 ZFP SZ MGARD PNG Blosc2 ZeroMQ Campaign \
	Derived_Variable XRootD AWSSDK

peers: bench-env target/peers/adios2/bin/adios2-config

target/peers/adios2/bin/adios2-config: | $(BIN)/maturin
	apt-get install -qy --no-install-recommends $(PEERS)
	rm -rf target/peers && mkdir -p target/peers/source
	$(BIN)/python -m pip download --quiet --no-deps --no-binary adios2 --dest target/peers \
		adios2==2.12.1.1001
	tar -xzf target/peers/adios2-*.tar.gz --strip-components 1 -C target/peers/source
	cmake -S target/peers/source -B target/peers/build -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_INSTALL_PREFIX=$(CURDIR)/target/peers/adios2 -DADIOS2_USE_MPI=ON -DBUILD_TESTING=OFF \
		-DADIOS2_BUILD_EXAMPLES=OFF $(ADIOS2_WITHOUT:%=-DADIOS2_USE_%=OFF)
	cmake --build target/peers/build --parallel --target install

# Seconds of each Python campaign, and cases of each Rust one.
SECONDS ?= 60
CASES ?= 20000
SEED ?= 1

campaign: NEEDS := --group test
campaign: build servers
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=2000 AMBAR_SEED=$(SEED) AMBAR_CASES=$(CASES) \
		cargo test --release --locked --workspace -- --include-ignored
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=20000 \
		cargo test --release --locked -p ambar-codec --lib properties
	$(BIN)/python -m pytest -m campaign
	$(BIN)/python -m campaigns --all --seconds $(SECONDS) --seed $(SEED) --keep out/campaigns

# Independent servers of object stores. Tests on a server that cannot be built are skipped.
SERVERS := target/servers
MINIO := github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
VERSITY := github.com/versity/versitygw/cmd/versitygw@v1.8.0
AZURITE := azurite@3.37.0

.PHONY: servers
servers: $(SERVERS)/bin/minio $(SERVERS)/bin/versitygw $(SERVERS)/azurite

$(SERVERS)/bin/minio $(SERVERS)/bin/versitygw: MODULE = $(if $(findstring minio,$@),$(MINIO),$(VERSITY))
$(SERVERS)/bin/minio $(SERVERS)/bin/versitygw:
	GOBIN="$(CURDIR)/$(@D)" go install $(MODULE) || echo "$(@F) is left out: it needs Go and its modules"

$(SERVERS)/azurite:
	npm install --silent --no-audit --no-fund --prefix $@ $(AZURITE) \
		|| { rm -rf $@; echo "Azurite is left out: it needs npm"; }

# Where a nightly toolchain is installed, ambar-codec's unit tests run with AddressSanitizer in the Rust code, too.
memcheck: NEEDS := --group test
memcheck: build
	$(BIN)/python -m campaigns memcheck --seconds $(SECONDS) --seed $(SEED) --keep out/campaigns
	if rustup run nightly cargo --version 2>/dev/null; then \
		RUSTFLAGS=-Zsanitizer=address PROPTEST_CASES=16 rustup run nightly cargo test --release --locked \
			-p ambar-codec --lib --target $$(rustc --print host-tuple) --target-dir target/address; \
	else \
		echo "no nightly toolchain: AddressSanitizer of Rust is left out"; \
	fi

# The advisories need the network.
deny:
	@cargo deny --version >/dev/null || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check licenses bans sources
	cargo deny --locked check advisories

.PHONY: build extension
build: plugin extension

extension: $(BIN)/maturin
	@command -v cargo >/dev/null || { echo "Rust is missing: see https://rustup.rs"; exit 1; }
	$(BIN)/maturin develop --release --locked $(NEEDS)

$(BIN)/maturin: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip' || { echo "Python lacks venv: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet 'pip>=25.1' maturin # whose groups of dependencies need this pip
	@touch $@

# For another C library than this machine's, as in wheels: make wheel CARGO=cargo-zigbuild
# TARGET=x86_64-unknown-linux-gnu GLIBC=.2.28
CARGO := cargo
BUILT = $${CARGO_TARGET_DIR:-target}$(TARGET:%=/%)/release
TARGET_OPTION = $(TARGET:%=--target %$(GLIBC))
ifeq ($(shell uname -s),Darwin)
SUFFIX := dylib
SHARED := libambar.dylib
STRIP := strip -x
else
SUFFIX := so
SHARED := libambar.so.0
STRIP := strip
endif

# The filter for HDF5: a library of its own, which exports no more than HDF5 looks for.
.PHONY: plugin
plugin:
	@command -v cargo >/dev/null || { echo "Rust is missing: see https://rustup.rs"; exit 1; }
	$(CARGO) rustc --release --locked $(TARGET_OPTION) -p ambar-capi --lib --crate-type cdylib \
		--no-default-features --features hdf5-plugin -- -C strip=symbols
	mkdir -p $(dir $(HDF5_PLUGIN))
	install -m 755 $(BUILT)/libambar_capi.$(SUFFIX) $(HDF5_PLUGIN)

# What programs in C, C++ and Fortran are built with, in TO; LOCATION and RPATH are for pkg-config.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
define LIBRARY
mkdir -p $(TO)/lib/pkgconfig $(TO)/lib/cmake/ambar $(TO)/include
install -m 755 $(BUILT)/libambar_capi.$(SUFFIX) $(TO)/lib/$(SHARED)
$(STRIP) $(TO)/lib/$(SHARED)
cp -R include/. $(TO)/include
sed -e 's|@PREFIX@|$(LOCATION)|' -e 's|@RPATH@|$(RPATH)|' -e 's|@VERSION@|$(VERSION)|' \
	packaging/ambar.pc.in > $(TO)/lib/pkgconfig/ambar.pc
for file in ambar-config ambar-config-version; do \
	sed 's|@VERSION@|$(VERSION)|' packaging/$$file.cmake.in > $(TO)/lib/cmake/ambar/$$file.cmake; \
done
endef

# The library in the Python package, for wheels: these have no links, and are installed anywhere. A script
# of the linker replaces the link libambar.so.
.PHONY: native wheel symbols
native: TO := python/ambar/native
native: LOCATION := $${pcfiledir}/../..
native: RPATH := -Wl,-rpath,$${libdir}
native: plugin
	$(CARGO) build --release --locked $(TARGET_OPTION) -p ambar-capi
	rm -rf $(TO)
	$(LIBRARY)
	[ $(SUFFIX) = dylib ] || echo 'INPUT($(SHARED))' > $(TO)/lib/libambar.so

wheel: native $(BIN)/maturin
	rm -rf out/wheels
	$(BIN)/maturin build --release --locked --out out/wheels --compression-level 9 \
		$(WHEEL_OPTIONS)

# Libraries in wheels are stripped. These files have the symbols and lines of the wheel that is made with them, for
# debuggers and profilers.
symbols: override WHEEL_OPTIONS += --strip false
symbols: wheel
	$(BIN)/python -m pip install --quiet wheel
	PATH=$(CURDIR)/$(BIN):$$PATH .ci/split out/wheels/*.whl $(BUILT)/libambar_capi.so out/symbols

# One object, of whose symbols others see only those of the API: a program may have another zstd, LZ4 or
# blosc. The bitcode in objects of Rust's standard library, of another version than binutils', is left out.
define STATIC
rm -f $(TO)/lib/libambar.a
nm -D --defined-only $(BUILT)/libambar_capi.so | sed -n 's/.* \(ambar_\)/\1/p' > $(BUILT)/ambar.symbols
ld -r --gc-sections $$(sed 's/^/-u /' $(BUILT)/ambar.symbols) $(BUILT)/libambar_capi.a -o $(BUILT)/ambar.o
objcopy -g -R .llvmbc -R .llvmcmd --keep-global-symbols=$(BUILT)/ambar.symbols $(BUILT)/ambar.o
ar rcs $(TO)/lib/libambar.a $(BUILT)/ambar.o
rm $(BUILT)/ambar.o
endef

# The library, the filter for HDF5, headers, and what pkg-config and CMake find them by; DESTDIR as usual.
# macOS has no objcopy that makes symbols local: there is no static library.
install: TO = $(DESTDIR)$(PREFIX)
install: LOCATION = $(PREFIX)
install: plugin
	mkdir -p $(TO)/lib/hdf5/plugin
	install -m 755 $(HDF5_PLUGIN) $(TO)/lib/hdf5/plugin
	$(CARGO) build --release --locked $(TARGET_OPTION) -p ambar-capi
	$(LIBRARY)
ifeq ($(SUFFIX),so)
	ln -sf $(SHARED) $(TO)/lib/libambar.so
	$(STATIC)
endif

clean:
	rm -rf .venv out target
