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

    ! As in ambar.h; `size` is the c_sizeof of the structure.
    type, bind(c) :: c_options
        integer(c_size_t) :: size
        integer(c_int32_t) :: overwrite, no_fsync
        integer(c_int64_t) :: alignment, extent
        integer(c_int32_t) :: threads, placement
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
