! Stores of ambar from Fortran: written by one process or, with the module ambar_mpi, by many; read.
!
! Dimensions come in Fortran's order, the fastest first, and indices begin at 1. The store keeps C's order, the
! slowest dimension first: what is u(nx, ny, nz) here is an array of the shape (nz, ny, nx) to Python, C and Zarr,
! with the same bytes. Shapes, starts and counts are integer(int64).
!
! Every subroutine ends with an optional ierr, which becomes 0 or one of AMBAR_CORRUPT to AMBAR_PANIC;
! ambar_last_error() says why. Without ierr an error ends the program.
module ambar
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int8, int16, int32, int64, real32, real64
    implicit none
    private

    public :: ambar_writer, ambar_array, ambar_blocks, ambar_store, ambar_settings
    public :: ambar_create, ambar_append, ambar_commit, ambar_close, ambar_group, ambar_begin_step
    public :: ambar_define, ambar_write, ambar_free
    public :: ambar_open, ambar_shape, ambar_read, ambar_attributes, ambar_last_error
    ! For the module ambar_mpi.
    public :: c_options, text_of, reversed, settled, concluded

    integer, parameter, public :: AMBAR_OK = 0, AMBAR_CORRUPT = 1, AMBAR_UNSUPPORTED = 2, AMBAR_INVALID = 3, &
        AMBAR_NOT_FOUND = 4, AMBAR_BUSY = 5, AMBAR_LIMIT = 6, AMBAR_INTERRUPTED = 7, AMBAR_IO = 8, AMBAR_PANIC = 9
    integer, parameter, public :: AMBAR_BOOL = 0, AMBAR_INT8 = 1, AMBAR_INT16 = 2, AMBAR_INT32 = 3, AMBAR_INT64 = 4, &
        AMBAR_UINT8 = 5, AMBAR_UINT16 = 6, AMBAR_UINT32 = 7, AMBAR_UINT64 = 8, AMBAR_FLOAT32 = 9, &
        AMBAR_FLOAT64 = 10, AMBAR_COMPLEX64 = 11, AMBAR_COMPLEX128 = 12
    integer, parameter, public :: AMBAR_BALANCED = 0, AMBAR_FAST = 1, AMBAR_SMALL = 2, AMBAR_RAW = 3
    integer, parameter, public :: AMBAR_RESERVED = 1, AMBAR_COUNTER = 2

    integer, parameter :: MAX_DIMENSIONS = 8

    ! A store open for writing: this process' end of it.
    type :: ambar_writer
        type(c_ptr) :: handle = c_null_ptr
        type(c_ptr) :: ranks = c_null_ptr ! of ambar_mpi
    end type

    ! An array that was defined since the last commit.
    type :: ambar_array
        integer(c_int32_t) :: id = -1
        integer :: type = -1
        integer :: ndim = 0
    end type

    ! Which rank holds which part of arrays of one shape; made by ambar_mpi_blocks.
    type :: ambar_blocks
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! A store open for reading.
    type :: ambar_store
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! How a store is written; the defaults suit a local disk.
    type :: ambar_settings
        logical :: overwrite = .false.          ! replace a file of that name
        logical :: fsync = .true.               ! commits survive a power cut
        integer(int64) :: alignment = 0         ! extents of ranks begin at multiples of it, bytes; 0: 4096
        integer(int64) :: extent = 0            ! bytes that a rank takes from the counter at least; 0: 1 MiB
        integer :: threads = 1                  ! each rank encodes with
        integer :: placement = 0                ! AMBAR_COUNTER or AMBAR_RESERVED
    end type

    type, bind(c) :: c_options
        integer(c_int32_t) :: overwrite, no_fsync
        integer(c_int64_t) :: alignment, extent
        integer(c_int32_t) :: threads, placement
    end type

    type, bind(c) :: c_spec
        integer(c_int32_t) :: type, profile
        real(c_double) :: error_bound
        type(c_ptr) :: dimension_names, attributes, codecs
        integer(c_int32_t) :: ndim
        type(c_ptr) :: shape, chunks
    end type

    type, bind(c) :: c_info
        integer(c_int32_t) :: type, ndim
        integer(c_int64_t) :: shape(MAX_DIMENSIONS), chunks(MAX_DIMENSIONS)
        real(c_double) :: error_bound
        integer(c_int64_t) :: stored_bytes
    end type

    type, bind(c) :: c_bytes
        type(c_ptr) :: data
        integer(c_size_t) :: len
    end type

    ! Writes a block of the rank's: call ambar_write(writer, array, start, values [, ierr]).
    interface ambar_write
        module procedure write_int8, write_int16, write_int32, write_int64, &
            write_real32, write_real64, write_complex32, write_complex64
    end interface

    ! Fills values: call ambar_read(store, path, start, values [, ierr]); decodes only the chunks that it needs.
    interface ambar_read
        module procedure read_int8, read_int16, read_int32, read_int64, &
            read_real32, read_real64, read_complex32, read_complex64
    end interface

    interface ambar_free
        module procedure free_blocks, free_store
    end interface

    interface
        integer(c_int) function c_create(path, options, writer) bind(c, name="ambar_create")
            import :: c_char, c_int, c_options, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            type(c_options), intent(in) :: options
            type(c_ptr), intent(out) :: writer
        end function
        integer(c_int) function c_append(path, options, writer) bind(c, name="ambar_append")
            import :: c_char, c_int, c_options, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            type(c_options), intent(in) :: options
            type(c_ptr), intent(out) :: writer
        end function
        integer(c_int) function c_group(writer, path, attributes) bind(c, name="ambar_group")
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*), attributes(*)
        end function
        integer(c_int) function c_begin_step(writer, series, time, path, room) bind(c, name="ambar_begin_step")
            import :: c_char, c_double, c_int, c_ptr, c_size_t
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: series(*)
            real(c_double), value :: time
            character(kind=c_char), intent(out) :: path(*)
            integer(c_size_t), value :: room
        end function
        integer(c_int) function c_define(writer, path, spec, blocks, array) bind(c, name="ambar_define")
            import :: c_char, c_int, c_int32_t, c_ptr, c_spec
            type(c_ptr), value :: writer, blocks
            character(kind=c_char), intent(in) :: path(*)
            type(c_spec), intent(in) :: spec
            integer(c_int32_t), intent(out) :: array
        end function
        integer(c_int) function c_write(writer, array, start, count, values) bind(c, name="ambar_write")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: writer, values
            integer(c_int32_t), value :: array
            integer(c_int64_t), intent(in) :: start(*), count(*)
        end function
        integer(c_int) function c_commit(writer) bind(c, name="ambar_commit")
            import :: c_int, c_ptr
            type(c_ptr), value :: writer
        end function
        integer(c_int) function c_close(writer) bind(c, name="ambar_close")
            import :: c_int, c_ptr
            type(c_ptr), value :: writer
        end function
        subroutine c_blocks_free(blocks) bind(c, name="ambar_blocks_free")
            import :: c_ptr
            type(c_ptr), value :: blocks
        end subroutine
        integer(c_int) function c_open(path, store) bind(c, name="ambar_open")
            import :: c_char, c_int, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: store
        end function
        subroutine c_store_free(store) bind(c, name="ambar_store_free")
            import :: c_ptr
            type(c_ptr), value :: store
        end subroutine
        integer(c_int) function c_array_info(store, path, info) bind(c, name="ambar_info")
            import :: c_char, c_info, c_int, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*)
            type(c_info), intent(out) :: info
        end function
        integer(c_int) function c_read(store, path, start, count, values, bytes, threads) bind(c, name="ambar_read")
            import :: c_char, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: store, values
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int64_t), intent(in) :: start(*), count(*)
            integer(c_size_t), value :: bytes
            integer(c_int32_t), value :: threads
        end function
        integer(c_int) function c_attributes(store, path, json) bind(c, name="ambar_attributes")
            import :: c_bytes, c_char, c_int, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*)
            type(c_bytes), intent(out) :: json
        end function
        subroutine c_bytes_free(bytes) bind(c, name="ambar_bytes_free")
            import :: c_bytes
            type(c_bytes), value :: bytes
        end subroutine
        function c_last_error() bind(c, name="ambar_last_error") result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function
        integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
        end function
    end interface

    character(:), allocatable, save :: last_error

contains

    ! Creates a store that this process writes; it appears under its name with the first commit.
    subroutine ambar_create(writer, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_create(trim(path) // c_null_char, settled(settings), writer%handle), c_last_error(), ierr)
    end subroutine

    ! Goes on with a store. What a killed writer left behind the last commit is cut off.
    subroutine ambar_append(writer, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_append(trim(path) // c_null_char, settled(settings), writer%handle), c_last_error(), ierr)
    end subroutine

    ! Makes a group, and those above it; attributes are a JSON object. Of many ranks, rank 0 does it.
    subroutine ambar_group(writer, path, attributes, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        character(*), intent(in), optional :: attributes
        integer, intent(out), optional :: ierr
        character(:), allocatable :: json
        json = "{}"
        if (present(attributes)) json = trim(attributes)
        call concluded(c_group(writer%handle, trim(path) // c_null_char, json // c_null_char), c_last_error(), ierr)
    end subroutine

    ! Begins the next step of the series at `series` ("": the root) and returns the path of its group; the next commit
    ! ends it. Many ranks call ambar_mpi_begin_step.
    subroutine ambar_begin_step(writer, series, time, group, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: series
        real(real64), intent(in) :: time
        character(:), allocatable, intent(out) :: group
        integer, intent(out), optional :: ierr
        character(kind=c_char) :: room(4096)
        integer :: status, n
        room = c_null_char
        status = c_begin_step(writer%handle, trim(series) // c_null_char, time, room, size(room, kind=c_size_t))
        group = ""
        do n = 1, size(room)
            if (room(n) == c_null_char) exit
            group = group // room(n)
        end do
        call concluded(status, c_last_error(), ierr)
    end subroutine

    ! Defines an array, to be written before the next commit; many ranks define the same ones in the same order.
    ! dimension_names are in Fortran's order, too, separated by commas; chunks are chosen where they are not given.
    subroutine ambar_define(writer, path, type, shape, array, blocks, profile, error_bound, dimension_names, &
                            attributes, codecs, chunks, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        integer, intent(in) :: type
        integer(int64), intent(in) :: shape(:)
        type(ambar_array), intent(out) :: array
        type(ambar_blocks), intent(in), optional :: blocks
        integer, intent(in), optional :: profile
        real(real64), intent(in), optional :: error_bound
        character(*), intent(in), optional :: dimension_names, attributes, codecs
        integer(int64), intent(in), optional :: chunks(:)
        integer, intent(out), optional :: ierr
        type(c_spec) :: spec
        type(c_ptr) :: held
        integer(c_int64_t), target :: lengths(MAX_DIMENSIONS + 1), pieces(MAX_DIMENSIONS + 1)
        character(:, kind=c_char), allocatable, target :: names, json, chain
        if (size(shape) > MAX_DIMENSIONS) then
            call refused("an array of more than 8 dimensions", ierr)
            return
        end if
        spec%type = type
        spec%profile = AMBAR_BALANCED
        if (present(profile)) spec%profile = profile
        spec%error_bound = 0
        if (present(error_bound)) spec%error_bound = error_bound
        lengths(:size(shape)) = reversed(shape)
        spec%ndim = size(shape)
        spec%shape = c_loc(lengths)
        spec%chunks = c_null_ptr
        if (present(chunks)) then
            if (size(chunks) /= size(shape)) then
                call refused("chunks of another number of dimensions than the array", ierr)
                return
            end if
            pieces(:size(chunks)) = reversed(chunks)
            spec%chunks = c_loc(pieces)
        end if
        spec%dimension_names = c_null_ptr
        if (present(dimension_names)) then
            names = last_name_first(dimension_names) // c_null_char
            spec%dimension_names = c_loc(names)
        end if
        spec%attributes = c_null_ptr
        if (present(attributes)) then
            json = trim(attributes) // c_null_char
            spec%attributes = c_loc(json)
        end if
        spec%codecs = c_null_ptr
        if (present(codecs)) then
            chain = trim(codecs) // c_null_char
            spec%codecs = c_loc(chain)
        end if
        held = c_null_ptr
        if (present(blocks)) held = blocks%handle
        array%type = type
        array%ndim = size(shape)
        call concluded(c_define(writer%handle, trim(path) // c_null_char, spec, held, array%id), c_last_error(), ierr)
    end subroutine

    ! Makes visible and durable what was written since the last commit. Many ranks call ambar_mpi_commit.
    subroutine ambar_commit(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit(writer%handle), c_last_error(), ierr)
    end subroutine

    ! Frees the writer; what was not committed is lost. Many ranks call ambar_mpi_close.
    subroutine ambar_close(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        type(c_ptr) :: handle
        handle = writer%handle
        writer%handle = c_null_ptr
        call concluded(c_close(handle), c_last_error(), ierr)
    end subroutine

    subroutine free_blocks(blocks)
        type(ambar_blocks), intent(inout) :: blocks
        call c_blocks_free(blocks%handle)
        blocks%handle = c_null_ptr
    end subroutine

    ! Opens a store for reading; any number of processes can, each by itself.
    subroutine ambar_open(store, path, ierr)
        type(ambar_store), intent(out) :: store
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call concluded(c_open(trim(path) // c_null_char, store%handle), c_last_error(), ierr)
    end subroutine

    subroutine free_store(store)
        type(ambar_store), intent(inout) :: store
        call c_store_free(store%handle)
        store%handle = c_null_ptr
    end subroutine

    ! The shape of an array, and its type.
    subroutine ambar_shape(store, path, shape, type, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), allocatable, intent(out) :: shape(:)
        integer, intent(out), optional :: type, ierr
        type(c_info) :: info
        integer :: status
        info%ndim = 0
        info%type = -1
        status = c_array_info(store%handle, trim(path) // c_null_char, info)
        shape = reversed(info%shape(:info%ndim))
        if (present(type)) type = info%type
        call concluded(status, c_last_error(), ierr)
    end subroutine

    ! The attributes of a group or an array: JSON.
    subroutine ambar_attributes(store, path, json, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        character(:), allocatable, intent(out) :: json
        integer, intent(out), optional :: ierr
        type(c_bytes) :: bytes
        character(kind=c_char), pointer :: text(:)
        integer :: status, n
        status = c_attributes(store%handle, trim(path) // c_null_char, bytes)
        json = ""
        if (status == AMBAR_OK) then
            call c_f_pointer(bytes%data, text, [bytes%len])
            allocate (character(bytes%len) :: json)
            do n = 1, size(text)
                json(n:n) = text(n)
            end do
            call c_bytes_free(bytes)
        end if
        call concluded(status, c_last_error(), ierr)
    end subroutine

    ! Why the last subroutine that failed did so.
    function ambar_last_error() result(text)
        character(:), allocatable :: text
        text = ""
        if (allocated(last_error)) text = last_error
    end function

    subroutine put(writer, array, type, start, count, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer, intent(in) :: type
        integer(int64), intent(in) :: start(:), count(:)
        type(c_ptr), intent(in) :: values
        integer, intent(out), optional :: ierr
        if (type /= array%type) then
            call refused("values of another type than the array's", ierr)
        else if (size(start) /= array%ndim .or. size(count) /= array%ndim) then
            call refused("start or values have another number of dimensions than the array", ierr)
        else
            call concluded(c_write(writer%handle, array%id, reversed(start - 1), reversed(count), values), &
                           c_last_error(), ierr)
        end if
    end subroutine

    subroutine get(store, path, type, start, count, values, bytes, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer, intent(in) :: type, bytes
        integer(int64), intent(in) :: start(:), count(:)
        type(c_ptr), intent(in) :: values
        integer, intent(out), optional :: ierr
        integer(int64), allocatable :: shape(:)
        integer :: found, status
        call ambar_shape(store, path, shape, found, status)
        if (status /= AMBAR_OK) then
            call ended(status, ierr)
        else if (type /= found) then
            call refused(trim(path) // ": values of another type than the array's", ierr)
        else if (size(start) /= size(shape) .or. size(count) /= size(shape)) then
            call refused(trim(path) // ": start or values have another number of dimensions than the array", ierr)
        else
            call concluded(c_read(store%handle, trim(path) // c_null_char, reversed(start - 1), reversed(count), values, &
                                  product(int(count, c_size_t)) * bytes, 1_c_int32_t), c_last_error(), ierr)
        end if
    end subroutine

    subroutine write_int8(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int8), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT8, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_int8(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int8), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT8, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_int16(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int16), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT16, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_int16(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int16), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT16, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_int32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT32, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_int32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT32, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_int64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_int64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_real32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_FLOAT32, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_real32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        real(real32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_FLOAT32, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_real64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_FLOAT64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_real64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        real(real64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_FLOAT64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_complex32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_COMPLEX64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_complex32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        complex(real32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_COMPLEX64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine write_complex64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_COMPLEX128, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine read_complex64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        complex(real64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_COMPLEX128, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    function reversed(numbers)
        integer(int64), intent(in) :: numbers(:)
        integer(c_int64_t) :: reversed(size(numbers))
        reversed = numbers(size(numbers):1:-1)
    end function

    recursive function last_name_first(names) result(turned)
        character(*), intent(in) :: names
        character(:), allocatable :: turned
        integer :: comma
        comma = index(names, ",")
        if (comma == 0) then
            turned = trim(adjustl(names))
        else
            turned = last_name_first(names(comma + 1:)) // "," // trim(adjustl(names(:comma - 1)))
        end if
    end function

    function settled(settings) result(options)
        type(ambar_settings), intent(in), optional :: settings
        type(c_options) :: options
        type(ambar_settings) :: own
        if (present(settings)) own = settings
        options%overwrite = merge(1, 0, own%overwrite)
        options%no_fsync = merge(0, 1, own%fsync)
        options%alignment = own%alignment
        options%extent = own%extent
        options%threads = own%threads
        options%placement = own%placement
    end function

    function text_of(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        integer :: n
        call c_f_pointer(pointer, bytes, [c_strlen(pointer)])
        allocate (character(size(bytes)) :: text)
        do n = 1, size(bytes)
            text(n:n) = bytes(n)
        end do
    end function

    subroutine refused(why, ierr)
        character(*), intent(in) :: why
        integer, intent(out), optional :: ierr
        last_error = why
        call ended(AMBAR_INVALID, ierr)
    end subroutine

    ! Hands a status on; without ierr an error ends the program.
    subroutine concluded(status, why, ierr)
        integer(c_int), intent(in) :: status
        type(c_ptr), intent(in) :: why
        integer, intent(out), optional :: ierr
        if (status /= AMBAR_OK) last_error = text_of(why)
        call ended(status, ierr)
    end subroutine

    subroutine ended(status, ierr)
        integer, intent(in) :: status
        integer, intent(out), optional :: ierr
        if (present(ierr)) then
            ierr = status
        else if (status /= AMBAR_OK) then
            write (error_unit, "(a)") "ambar: " // last_error
            error stop 1
        end if
    end subroutine
end module
