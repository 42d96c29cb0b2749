!> Interfaces of the C API of ambar, and helpers of the other modules; programs use the module ambar.
module ambar_c
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int64
    implicit none
    public
    private :: last_error

    integer, parameter :: MAX_DIMENSIONS = 8
    integer, parameter :: AMBAR_OK = 0, AMBAR_CORRUPT = 1, AMBAR_UNSUPPORTED = 2, AMBAR_INVALID = 3, &
        AMBAR_NOT_FOUND = 4, AMBAR_BUSY = 5, AMBAR_LIMIT = 6, AMBAR_INTERRUPTED = 7, AMBAR_IO = 8, AMBAR_PANIC = 9, &
        AMBAR_EXISTS = 10
    integer, parameter :: AMBAR_BOOL = 0, AMBAR_INT8 = 1, AMBAR_INT16 = 2, AMBAR_INT32 = 3, AMBAR_INT64 = 4, &
        AMBAR_UINT8 = 5, AMBAR_UINT16 = 6, AMBAR_UINT32 = 7, AMBAR_UINT64 = 8, AMBAR_FLOAT32 = 9, &
        AMBAR_FLOAT64 = 10, AMBAR_COMPLEX64 = 11, AMBAR_COMPLEX128 = 12
    integer, parameter :: AMBAR_BALANCED = 0, AMBAR_FAST = 1, AMBAR_SMALL = 2, AMBAR_RAW = 3
    integer, parameter :: AMBAR_RESERVED = 1, AMBAR_COUNTER = 2
    integer, parameter :: AMBAR_COVERED_DEFAULT = 0, AMBAR_COVERED_KEEP = 1, AMBAR_COVERED_DROP = 2

    ! As in ambar.h; `size` is the c_sizeof of the structure.
    type, bind(c) :: c_options
        integer(c_size_t) :: size
        integer(c_int32_t) :: overwrite, no_fsync
        integer(c_int64_t) :: alignment, extent
        integer(c_int32_t) :: threads, placement
        integer(c_int64_t) :: queue_bytes
    end type

    type, bind(c) :: c_spec
        integer(c_size_t) :: size
        integer(c_int32_t) :: type, profile
        type(c_ptr) :: error_bound, value_range, dimension_names, attributes, codecs
        integer(c_int32_t) :: ndim
        type(c_ptr) :: shape, chunks
        integer(c_int32_t) :: predict
        type(c_ptr) :: fill_value
    end type

    type, bind(c) :: c_info
        integer(c_size_t) :: size
        integer(c_int32_t) :: type, ndim
        integer(c_int64_t) :: shape(MAX_DIMENSIONS), chunks(MAX_DIMENSIONS)
        character(kind=c_char) :: error_bound(80)
        integer(c_int64_t) :: stored_bytes, unwritten_values
    end type

    type, bind(c) :: c_field
        integer(c_size_t) :: size
        type(c_ptr) :: name
        integer(c_int32_t) :: type
        type(c_ptr) :: error_bound, value_range, codecs
    end type

    type, bind(c) :: c_hierarchy
        integer(c_size_t) :: size
        integer(c_int32_t) :: ndim, levels
        real(c_double) :: lower(3), upper(3)
        type(c_ptr) :: domains, cell_sizes, ratios, boxes, corners, ranks
    end type

    type, bind(c) :: c_run
        integer(c_size_t) :: size
        type(c_ptr) :: name, format
        real(c_double) :: time
        integer(c_int32_t) :: coordinates
        type(c_ptr) :: steps
        integer(c_int32_t) :: species_count
        type(c_ptr) :: species
    end type

    type, bind(c) :: c_bytes
        type(c_ptr) :: data
        integer(c_size_t) :: len
    end type

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
        integer(c_int) function c_begin_output(writer, number, name, path, room) bind(c, name="ambar_begin_output")
            import :: c_char, c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: writer, name
            integer(c_int32_t), value :: number
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
        integer(c_int) function c_write_borrowed(writer, array, start, count, values) bind(c, name="ambar_write_borrowed")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: writer, values
            integer(c_int32_t), value :: array
            integer(c_int64_t), intent(in) :: start(*), count(*)
        end function
        integer(c_int) function c_choose_codecs(spec, sample, sample_shape, json) bind(c, name="ambar_choose_codecs")
            import :: c_bytes, c_int, c_int64_t, c_ptr, c_spec
            type(c_spec), intent(in) :: spec
            type(c_ptr), value :: sample
            integer(c_int64_t), intent(in) :: sample_shape(*)
            type(c_bytes), intent(out) :: json
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
            type(c_info), intent(inout) :: info
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
        integer(c_int) function c_set_attributes(writer, path, attributes) bind(c, name="ambar_set_attributes")
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*), attributes(*)
        end function
        integer(c_int) function c_set_numbers(writer, path, name, type, values, count) &
            bind(c, name="ambar_set_attribute_numbers")
            import :: c_char, c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: writer, values
            character(kind=c_char), intent(in) :: path(*), name(*)
            integer(c_int32_t), value :: type
            integer(c_size_t), value :: count
        end function
        integer(c_int) function c_set_text(writer, path, name, text) bind(c, name="ambar_set_attribute_text")
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*), name(*), text(*)
        end function
        integer(c_int) function c_delete(writer, path) bind(c, name="ambar_delete")
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*)
        end function
        integer(c_int) function c_commit_begin(writer) bind(c, name="ambar_commit_begin")
            import :: c_int, c_ptr
            type(c_ptr), value :: writer
        end function
        integer(c_int) function c_commit_test(writer, done) bind(c, name="ambar_commit_test")
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: writer
            integer(c_int32_t), intent(out) :: done
        end function
        integer(c_int) function c_commit_wait(writer) bind(c, name="ambar_commit_wait")
            import :: c_int, c_ptr
            type(c_ptr), value :: writer
        end function
        integer(c_int) function c_get_numbers(store, path, name, type, values, room, count) &
            bind(c, name="ambar_attribute_numbers")
            import :: c_char, c_int, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: store, values
            character(kind=c_char), intent(in) :: path(*), name(*)
            integer(c_int32_t), value :: type
            integer(c_size_t), value :: room
            integer(c_size_t), intent(out) :: count
        end function
        integer(c_int) function c_get_text(store, path, name, text) bind(c, name="ambar_attribute_text")
            import :: c_bytes, c_char, c_int, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*), name(*)
            type(c_bytes), intent(out) :: text
        end function
        integer(c_int) function c_dimension_names(store, path, names) bind(c, name="ambar_dimension_names")
            import :: c_bytes, c_char, c_int, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*)
            type(c_bytes), intent(out) :: names
        end function
        integer(c_int) function c_codecs(store, path, codecs) bind(c, name="ambar_codecs")
            import :: c_bytes, c_char, c_int, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*)
            type(c_bytes), intent(out) :: codecs
        end function
        integer(c_int) function c_children(store, path, count, names, kinds) bind(c, name="ambar_children")
            import :: c_bytes, c_char, c_int, c_int64_t, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int64_t), intent(out) :: count
            type(c_bytes), intent(out) :: names, kinds
        end function
        integer(c_int) function c_step_count(store, series, count) bind(c, name="ambar_step_count")
            import :: c_char, c_int, c_int64_t, c_ptr
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: series(*)
            integer(c_int64_t), intent(out) :: count
        end function
        integer(c_int) function c_step(store, series, index, time, path, room) bind(c, name="ambar_step")
            import :: c_char, c_double, c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: series(*)
            integer(c_int64_t), value :: index
            real(c_double), intent(out) :: time
            character(kind=c_char), intent(out) :: path(*)
            integer(c_size_t), value :: room
        end function
        integer(c_int) function c_amr_define(writer, path, hierarchy, count, fields, profile, covered, amr) &
            bind(c, name="ambar_amr_define")
            import :: c_char, c_field, c_hierarchy, c_int, c_int32_t, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*)
            type(c_hierarchy), intent(in) :: hierarchy
            integer(c_int32_t), value :: count, profile, covered
            type(c_field), intent(in) :: fields(*)
            type(c_ptr), intent(out) :: amr
        end function
        integer(c_int) function c_amr_write(amr, writer, level, index, field, first, strides) &
            bind(c, name="ambar_amr_write")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: amr, writer, first
            integer(c_int32_t), value :: level, index, field
            integer(c_int64_t), intent(in) :: strides(*)
        end function
        integer(c_int) function c_amr_end(amr, writer) bind(c, name="ambar_amr_end")
            import :: c_int, c_ptr
            type(c_ptr), value :: amr, writer
        end function
        integer(c_int) function c_amr_snapshot(writer, path, amr, run) bind(c, name="ambar_amr_snapshot")
            import :: c_char, c_int, c_ptr, c_run
            type(c_ptr), value :: writer, amr
            character(kind=c_char), intent(in) :: path(*)
            type(c_run), intent(in) :: run
        end function
        integer(c_int) function c_particles_define(writer, path, counts, count, columns, profile, ndim, lower, side, &
                                                   more, particles) bind(c, name="ambar_particles_define")
            import :: c_char, c_double, c_field, c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: path(*), more(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int32_t), value :: count, profile, ndim
            type(c_field), intent(in) :: columns(*)
            real(c_double), intent(in) :: lower(*)
            real(c_double), value :: side
            type(c_ptr), intent(out) :: particles
        end function
        integer(c_int) function c_particles_write(particles, writer, column, first, stride) &
            bind(c, name="ambar_particles_write")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: particles, writer, first
            integer(c_int32_t), value :: column
            integer(c_int64_t), value :: stride
        end function
        integer(c_int) function c_particles_end(particles, writer) bind(c, name="ambar_particles_end")
            import :: c_int, c_ptr
            type(c_ptr), value :: particles, writer
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

    !> Returns the message of the last subroutine that failed.
    function ambar_last_error() result(text)
        character(:), allocatable :: text
        text = ""
        if (allocated(last_error)) text = last_error
    end function

    function reversed(numbers)
        integer(int64), intent(in) :: numbers(:)
        integer(c_int64_t) :: reversed(size(numbers))
        reversed = numbers(size(numbers):1:-1)
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

    ! Takes a string that begins at `data`, and releases the bytes.
    function taken(bytes) result(text)
        type(c_bytes), intent(in) :: bytes
        character(:), allocatable :: text
        text = text_of(bytes%data)
        call c_bytes_free(bytes)
    end function

    ! Takes bytes as a string, and releases them.
    function taken_bytes(bytes) result(text)
        type(c_bytes), intent(in) :: bytes
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: n
        call c_f_pointer(bytes%data, characters, [bytes%len])
        allocate (character(bytes%len) :: text)
        do n = 1, size(characters)
            text(n:n) = characters(n)
        end do
        call c_bytes_free(bytes)
    end function

    ! Names separated by commas, in the other order.
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

    subroutine refused(status, why, ierr)
        integer, intent(in) :: status
        character(*), intent(in) :: why
        integer, intent(out), optional :: ierr
        if (status /= AMBAR_OK) last_error = why
        call ended(status, ierr)
    end subroutine

    ! Returns a status; without ierr an error stops the program.
    subroutine concluded(status, ierr)
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: ierr
        if (status /= AMBAR_OK) last_error = text_of(c_last_error())
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
