!> Writing and reading stores of ambar from Fortran, with one process, or with many ranks (module ambar_mpi).
!!
!! Dimensions are in Fortran order, fastest first, and indices begin at 1. The store has C order, slowest dimension
!! first: u(nx, ny, nz) in Fortran is an array of the shape (nz, ny, nx) in Python, C and Zarr, with the same bytes.
!! Shapes, starts and counts are integer(int64).
!!
!! Every subroutine ends with an optional ierr, which becomes 0 or one of AMBAR_CORRUPT to AMBAR_PANIC;
!! ambar_last_error() returns the message. Without ierr an error stops the program.
module ambar
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use ambar_c
    use ambar_reading
    use ambar_writing
    use ambar_in_situ
    implicit none
    private

    public :: ambar_writer, ambar_array, ambar_blocks, ambar_settings
    public :: ambar_create, ambar_append, ambar_commit, ambar_close, ambar_group, ambar_begin_step
    public :: ambar_begin_output, ambar_define, ambar_choose_codecs, ambar_write, ambar_write_borrowed, ambar_free
    public :: ambar_commit_begin, ambar_commit_test, ambar_commit_wait
    public :: ambar_set_attribute, ambar_set_attributes, ambar_delete
    public :: ambar_amr, ambar_level, ambar_field, ambar_amr_define, ambar_amr_write, ambar_amr_snapshot, ambar_amr_end
    public :: ambar_particles, ambar_particles_define, ambar_particles_write, ambar_particles_end
    public :: ambar_open, ambar_shape, ambar_read, ambar_attribute, ambar_attributes, ambar_list, ambar_node, ambar_store
    public :: ambar_codecs, ambar_dimension_names, ambar_step, ambar_step_count, ambar_last_error
    public :: AMBAR_OK, AMBAR_CORRUPT, AMBAR_UNSUPPORTED, AMBAR_INVALID, AMBAR_NOT_FOUND
    public :: AMBAR_BUSY, AMBAR_LIMIT, AMBAR_INTERRUPTED, AMBAR_IO, AMBAR_PANIC, AMBAR_EXISTS, AMBAR_BOOL
    public :: AMBAR_INT8, AMBAR_INT16, AMBAR_INT32, AMBAR_INT64, AMBAR_UINT8, AMBAR_UINT16
    public :: AMBAR_UINT32, AMBAR_UINT64, AMBAR_FLOAT32, AMBAR_FLOAT64, AMBAR_COMPLEX64
    public :: AMBAR_COMPLEX128, AMBAR_BALANCED, AMBAR_FAST, AMBAR_SMALL, AMBAR_RAW, AMBAR_RESERVED
    public :: AMBAR_COUNTER, AMBAR_COVERED_DEFAULT, AMBAR_COVERED_KEEP, AMBAR_COVERED_DROP
    public :: settled ! for the module ambar_mpi

    !> An array defined since the last commit.
    type :: ambar_array
        integer(c_int32_t) :: id = -1
        integer :: type = -1
        integer :: ndim = 0
    end type

    !> The decomposition of arrays of one shape, from ambar_mpi_blocks.
    type :: ambar_blocks
        type(c_ptr) :: handle = c_null_ptr
    end type

    !> Options of a store; the defaults suit a local disk.
    type :: ambar_settings
        logical :: overwrite = .false.          ! replace an existing file
        logical :: fsync = .true.               ! commits survive a power failure
        integer(int64) :: alignment = 0         ! alignment of the extents of ranks in bytes; 0: 4096
        integer(int64) :: extent = 0            ! minimum bytes of an extent from the counter; 0: 16 KiB, growing
        integer :: threads = 1                  ! encoding threads of each rank
        integer :: placement = 0                ! AMBAR_COUNTER or AMBAR_RESERVED
        integer(int64) :: queue_bytes = 0       ! > 0: a thread writes while the program computes; maximum bytes of copies
    end type

    !> Writes a block of this rank: call ambar_write(writer, array, start, values [, ierr]).
    interface ambar_write
        module procedure write_int8, write_int16, write_int32, write_int64, &
            write_real32, write_real64, write_complex32, write_complex64, write_logical
    end interface

    !> As ambar_write, without a copy: call ambar_write_borrowed(writer, array, start, values [, ierr]). The values are
    !! contiguous, and of a variable with the attribute target or of a pointer. They must not change, or be freed, until the
    !! commit or its wait has succeeded, or the writer is closed. Without settings%queue_bytes it is ambar_write.
    interface ambar_write_borrowed
        module procedure borrow_int8, borrow_int16, borrow_int32, borrow_int64, &
            borrow_real32, borrow_real64, borrow_complex32, borrow_complex64
    end interface

    !> Chooses codecs for an array of the shape `lengths` from a sample of its values, an array of as many dimensions:
    !! call ambar_choose_codecs(sample, lengths, codecs [, profile, predict, ierr]). The text codecs is for ambar_define; all
    !! ranks must define the array with the same codecs. profile and predict are those of ambar_define.
    interface ambar_choose_codecs
        module procedure choose_int8, choose_int16, choose_int32, choose_int64, &
            choose_real32, choose_real64, choose_complex32, choose_complex64
    end interface

    !> Releases the handle of blocks: call ambar_free(blocks).
    interface ambar_free
        module procedure free_blocks
    end interface

contains

    !> Creates a store that this process writes. It appears under its name with the first commit.
    subroutine ambar_create(writer, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_create(trim(path) // c_null_char, settled(settings), writer%handle), ierr)
    end subroutine

    !> Opens a store for appending. Bytes that a killed writer left after the last commit are removed.
    subroutine ambar_append(writer, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_append(trim(path) // c_null_char, settled(settings), writer%handle), ierr)
    end subroutine

    !> Creates a group and its parent groups; attributes are a JSON object. Of many ranks, only the call on rank 0 has an effect.
    subroutine ambar_group(writer, path, attributes, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        character(*), intent(in), optional :: attributes
        integer, intent(out), optional :: ierr
        character(:), allocatable :: json
        json = "{}"
        if (present(attributes)) json = trim(attributes)
        call concluded(c_group(writer%handle, trim(path) // c_null_char, json // c_null_char), ierr)
    end subroutine

    !> Begins the next step of the series at `series` ("": the root) and returns the path of its group. The next commit
    !! ends the step. Many ranks call ambar_mpi_begin_step.
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
        call concluded(status, ierr)
    end subroutine

    !> Begins the output `number` of the series of snapshots at the root, and returns the path of its group, such as
    !! output_00010. An output of this number that the store has is replaced, if it has the name `name`, such as
    !! "plt00010"; without `name`, it may have any. All ranks call it with equal arguments. The next commit ends the output.
    subroutine ambar_begin_output(writer, number, name, group, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: number
        character(*), intent(in), optional :: name
        character(:), allocatable, intent(out) :: group
        integer, intent(out), optional :: ierr
        character(kind=c_char), target :: room(32)
        character(:, kind=c_char), allocatable, target :: text
        type(c_ptr) :: given
        integer :: status
        room = c_null_char
        group = ""
        if (number < 0) then
            call refused(AMBAR_INVALID, "expected a number >= 0 of an output, found a negative one", ierr)
            return
        end if
        given = c_null_ptr
        if (present(name)) then
            text = trim(name) // c_null_char
            given = c_loc(text)
        end if
        status = c_begin_output(writer%handle, number, given, room, size(room, kind=c_size_t))
        group = text_of(c_loc(room))
        call concluded(status, ierr)
    end subroutine

    !> Defines an array, to be written before the next commit. All ranks define equal arrays in equal order.
    !! dimension_names are in Fortran order, separated by commas. chunks are optional. With predict and AMBAR_FAST,
    !! floating-point values are encoded losslessly by the codec ambar near the speed of memory; readers then need ambar.
    !! Values that no rank writes read as fill_value, a value of the array's type; 0 by default.
    !! error_bound is "0.5" (absolute, in the unit of the values), "1e-3 relative", "1e-3 relative above 1e-10", "12 bits",
    !! "0.01 rms", or, with value_range, "1e-3 of range" or "80 dB". value_range is the lowest and the highest finite value
    !! of the whole array, on all ranks.
    subroutine ambar_define(writer, path, type, shape, array, blocks, profile, error_bound, dimension_names, &
                            attributes, codecs, chunks, ierr, predict, fill_value, value_range)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        integer, intent(in) :: type
        integer(int64), intent(in) :: shape(:)
        type(ambar_array), intent(out) :: array
        type(ambar_blocks), intent(in), optional :: blocks
        integer, intent(in), optional :: profile
        character(*), intent(in), optional :: error_bound, dimension_names, attributes, codecs
        integer(int64), intent(in), optional :: chunks(:)
        integer, intent(out), optional :: ierr
        logical, intent(in), optional :: predict
        class(*), intent(in), optional :: fill_value
        real(real64), intent(in), optional :: value_range(2)
        type(c_spec) :: spec
        type(c_ptr) :: held
        integer(c_int64_t), target :: lengths(MAX_DIMENSIONS + 1), pieces(MAX_DIMENSIONS + 1)
        character(:, kind=c_char), allocatable, target :: bound, names, json, chain
        real(c_double), target :: ends(2)
        integer(int8), target :: fill(16)
        logical :: known
        if (size(shape) > MAX_DIMENSIONS) then
            call refused(AMBAR_INVALID, "expected at most 8 dimensions of an array, found more", ierr)
            return
        end if
        spec%size = c_sizeof(spec)
        spec%type = type
        spec%profile = AMBAR_BALANCED
        if (present(profile)) spec%profile = profile
        spec%error_bound = c_null_ptr
        if (present(error_bound)) then
            bound = trim(error_bound) // c_null_char
            spec%error_bound = c_loc(bound)
        end if
        spec%value_range = c_null_ptr
        if (present(value_range)) then
            ends = value_range
            spec%value_range = c_loc(ends)
        end if
        lengths(:size(shape)) = reversed(shape)
        spec%ndim = size(shape)
        spec%shape = c_loc(lengths)
        spec%chunks = c_null_ptr
        if (present(chunks)) then
            if (size(chunks) /= size(shape)) then
                call refused(AMBAR_INVALID, "expected chunks with as many dimensions as the array", ierr)
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
        spec%predict = 0
        if (present(predict)) spec%predict = merge(1, 0, predict)
        spec%fill_value = c_null_ptr
        if (present(fill_value)) then
            call fill_with(fill_value, type, fill, known)
            if (.not. known) then
                call refused(AMBAR_INVALID, "expected a fill value of the array's type, found another type", ierr)
                return
            end if
            spec%fill_value = c_loc(fill)
        end if
        held = c_null_ptr
        if (present(blocks)) held = blocks%handle
        array%type = type
        array%ndim = size(shape)
        call concluded(c_define(writer%handle, trim(path) // c_null_char, spec, held, array%id), ierr)
    end subroutine

    !> Makes everything written since the last commit visible and durable. Many ranks call ambar_mpi_commit.
    subroutine ambar_commit(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit(writer%handle), ierr)
    end subroutine

    !> Begins a commit, and returns while a thread encodes and writes the values (with settings%queue_bytes; otherwise when
    !! they are written): ambar_commit_wait ends it. In between, only ambar_commit_test and ambar_close may be called on the
    !! writer. Many ranks call ambar_mpi_commit_begin.
    subroutine ambar_commit_begin(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit_begin(writer%handle), ierr)
    end subroutine

    !> Returns whether ambar_commit_wait would return without waiting for the values of this rank to be written.
    subroutine ambar_commit_test(writer, done, ierr)
        type(ambar_writer), intent(inout) :: writer
        logical, intent(out) :: done
        integer, intent(out), optional :: ierr
        integer(c_int32_t) :: found
        integer :: status
        found = 0
        status = c_commit_test(writer%handle, found)
        done = found /= 0
        call concluded(status, ierr)
    end subroutine

    !> Ends the commit that ambar_commit_begin has begun: readers see the values. Many ranks call ambar_mpi_commit_wait.
    subroutine ambar_commit_wait(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit_wait(writer%handle), ierr)
    end subroutine

    !> Releases the writer. Uncommitted data are lost. Many ranks call ambar_mpi_close.
    subroutine ambar_close(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        type(c_ptr) :: handle
        handle = writer%handle
        writer%handle = c_null_ptr
        call concluded(c_close(handle), ierr)
    end subroutine

    subroutine free_blocks(blocks)
        type(ambar_blocks), intent(inout) :: blocks
        call c_blocks_free(blocks%handle)
        blocks%handle = c_null_ptr
    end subroutine

    subroutine put(writer, array, type, start, count, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer, intent(in) :: type
        integer(int64), intent(in) :: start(:), count(:)
        type(c_ptr), intent(in) :: values
        integer, intent(out), optional :: ierr
        integer(c_int) :: status
        if (type /= array%type .or. size(start) /= array%ndim .or. size(count) /= array%ndim) then
            ! Prevents a commit without these values.
            status = c_write(writer%handle, -1_c_int32_t, [0_c_int64_t], [0_c_int64_t], c_null_ptr)
            call refused(status, "expected values of the array's type and number of dimensions, found another type or number", ierr)
        else
            call concluded(c_write(writer%handle, array%id, reversed(start - 1), reversed(count), values), ierr)
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

    subroutine write_int16(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int16), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT16, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_int32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT32, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_int64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_INT64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_real32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_FLOAT32, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_real64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_FLOAT64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_complex32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_COMPLEX64, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    subroutine write_complex64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put(writer, array, AMBAR_COMPLEX128, start, shape(values, int64), c_loc(values), ierr)
    end subroutine

    !> Logicals are stored as booleans, one byte each (AMBAR_BOOL).
    subroutine write_logical(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        logical, intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        logical, pointer :: all(:)
        integer(int8), allocatable, target :: bytes(:)
        call c_f_pointer(c_loc(values), all, [size(values)])
        allocate (bytes(max(size(all), 1)))
        bytes(:size(all)) = merge(1_int8, 0_int8, all)
        call put(writer, array, AMBAR_BOOL, start, shape(values, int64), c_loc(bytes), ierr)
    end subroutine

    subroutine lend(writer, array, type, start, count, values, contiguous, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer, intent(in) :: type
        integer(int64), intent(in) :: start(:), count(:)
        type(c_ptr), intent(in) :: values
        logical, intent(in) :: contiguous
        integer, intent(out), optional :: ierr
        integer(c_int) :: status
        if (type /= array%type .or. size(start) /= array%ndim .or. size(count) /= array%ndim .or. .not. contiguous) then
            ! Prevents a commit without these values.
            status = c_write(writer%handle, -1_c_int32_t, [0_c_int64_t], [0_c_int64_t], c_null_ptr)
            call refused(status, "expected contiguous values of the array's type and number of dimensions, found others; " // &
                         "use ambar_write for sections", ierr)
        else
            call concluded(c_write_borrowed(writer%handle, array%id, reversed(start - 1), reversed(count), values), ierr)
        end if
    end subroutine

    subroutine borrow_int8(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int8), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_INT8, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_int16(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int16), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_INT16, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_int32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int32), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_INT32, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_int64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        integer(int64), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_INT64, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_real32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real32), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_FLOAT32, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_real64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        real(real64), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_FLOAT64, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_complex32(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real32), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_COMPLEX64, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine borrow_complex64(writer, array, start, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        type(ambar_array), intent(in) :: array
        integer(int64), intent(in) :: start(:)
        complex(real64), intent(in), target :: values(..)
        integer, intent(out), optional :: ierr
        call lend(writer, array, AMBAR_COMPLEX128, start, shape(values, int64), c_loc(values), is_contiguous(values), ierr)
    end subroutine

    subroutine choose(type, sample, count, lengths, codecs, profile, predict, ierr)
        integer, intent(in) :: type
        type(c_ptr), intent(in) :: sample
        integer(int64), intent(in) :: count(:), lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        type(c_spec) :: spec
        type(c_bytes) :: json
        integer(c_int64_t), target :: whole(MAX_DIMENSIONS)
        integer :: status
        codecs = ""
        if (size(lengths) > MAX_DIMENSIONS .or. size(lengths) /= size(count)) then
            call refused(AMBAR_INVALID, "expected a sample with as many dimensions as the array, at most 8, found another number", &
                         ierr)
            return
        end if
        whole(:size(lengths)) = reversed(lengths)
        spec%size = c_sizeof(spec)
        spec%type = type
        spec%profile = AMBAR_BALANCED
        if (present(profile)) spec%profile = profile
        spec%error_bound = c_null_ptr
        spec%value_range = c_null_ptr
        spec%dimension_names = c_null_ptr
        spec%attributes = c_null_ptr
        spec%codecs = c_null_ptr
        spec%ndim = size(lengths)
        spec%shape = c_loc(whole)
        spec%chunks = c_null_ptr
        spec%predict = 0
        if (present(predict)) spec%predict = merge(1, 0, predict)
        spec%fill_value = c_null_ptr
        status = c_choose_codecs(spec, sample, reversed(count), json)
        if (status == AMBAR_OK) codecs = taken_bytes(json)
        call concluded(status, ierr)
    end subroutine

    subroutine choose_int8(sample, lengths, codecs, profile, predict, ierr)
        integer(int8), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_INT8, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_int16(sample, lengths, codecs, profile, predict, ierr)
        integer(int16), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_INT16, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_int32(sample, lengths, codecs, profile, predict, ierr)
        integer(int32), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_INT32, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_int64(sample, lengths, codecs, profile, predict, ierr)
        integer(int64), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_INT64, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_real32(sample, lengths, codecs, profile, predict, ierr)
        real(real32), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_FLOAT32, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_real64(sample, lengths, codecs, profile, predict, ierr)
        real(real64), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_FLOAT64, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_complex32(sample, lengths, codecs, profile, predict, ierr)
        complex(real32), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_COMPLEX64, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    subroutine choose_complex64(sample, lengths, codecs, profile, predict, ierr)
        complex(real64), intent(in), contiguous, target :: sample(..)
        integer(int64), intent(in) :: lengths(:)
        character(:), allocatable, intent(out) :: codecs
        integer, intent(in), optional :: profile
        logical, intent(in), optional :: predict
        integer, intent(out), optional :: ierr
        call choose(AMBAR_COMPLEX128, c_loc(sample), shape(sample, int64), lengths, codecs, profile, predict, ierr)
    end subroutine

    ! The bytes of a fill value; known is true if it has the array's type.
    subroutine fill_with(value, type, bytes, known)
        class(*), intent(in) :: value
        integer, intent(in) :: type
        integer(int8), intent(out) :: bytes(16)
        logical, intent(out) :: known
        integer :: is
        bytes = 0
        is = -1
        select type (value)
        type is (logical)
            is = AMBAR_BOOL
            bytes(1) = merge(1_int8, 0_int8, value)
        type is (integer(int8))
            is = AMBAR_INT8
            bytes(:1) = transfer(value, bytes, 1)
        type is (integer(int16))
            is = AMBAR_INT16
            bytes(:2) = transfer(value, bytes, 2)
        type is (integer(int32))
            is = AMBAR_INT32
            bytes(:4) = transfer(value, bytes, 4)
        type is (integer(int64))
            is = AMBAR_INT64
            bytes(:8) = transfer(value, bytes, 8)
        type is (real(real32))
            is = AMBAR_FLOAT32
            bytes(:4) = transfer(value, bytes, 4)
        type is (real(real64))
            is = AMBAR_FLOAT64
            bytes(:8) = transfer(value, bytes, 8)
        type is (complex(real32))
            is = AMBAR_COMPLEX64
            bytes(:8) = transfer(value, bytes, 8)
        type is (complex(real64))
            is = AMBAR_COMPLEX128
            bytes = transfer(value, bytes, 16)
        end select
        known = is == type
    end subroutine

    function settled(settings) result(options)
        type(ambar_settings), intent(in), optional :: settings
        type(c_options) :: options
        type(ambar_settings) :: own
        if (present(settings)) own = settings
        options%size = c_sizeof(options)
        options%overwrite = merge(1, 0, own%overwrite)
        options%no_fsync = merge(0, 1, own%fsync)
        options%alignment = own%alignment
        options%extent = own%extent
        options%threads = own%threads
        options%placement = own%placement
        options%queue_bytes = own%queue_bytes
    end function

end module
