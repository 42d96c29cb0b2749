!> Reading stores of ambar from Fortran; programs use the module ambar.
module ambar_reading
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use ambar_c
    implicit none
    private

    public :: ambar_store, ambar_open, ambar_free, ambar_shape, ambar_read, ambar_attributes

    !> A store open for reading.
    type :: ambar_store
        type(c_ptr) :: handle = c_null_ptr
    end type

    !> Reads values: call ambar_read(store, path, start, values [, ierr]). Decodes only chunks that overlap the region.
    interface ambar_read
        module procedure read_int8, read_int16, read_int32, read_int64, &
            read_real32, read_real64, read_complex32, read_complex64
    end interface

    interface ambar_free
        module procedure free_store
    end interface

contains

    !> Opens a store for reading. Any number of processes can open it independently.
    subroutine ambar_open(store, path, ierr)
        type(ambar_store), intent(out) :: store
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call concluded(c_open(trim(path) // c_null_char, store%handle), ierr)
    end subroutine

    !> Returns the shape and the type of an array.
    subroutine ambar_shape(store, path, shape, type, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), allocatable, intent(out) :: shape(:)
        integer, intent(out), optional :: type, ierr
        type(c_info) :: info
        integer :: status
        info%size = c_sizeof(info)
        info%ndim = 0
        info%type = -1
        status = c_array_info(store%handle, trim(path) // c_null_char, info)
        shape = reversed(info%shape(:info%ndim))
        if (present(type)) type = info%type
        call concluded(status, ierr)
    end subroutine

    !> Returns the attributes of a group or an array as JSON.
    subroutine ambar_attributes(store, path, json, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        character(:), allocatable, intent(out) :: json
        integer, intent(out), optional :: ierr
        type(c_bytes) :: bytes
        character(kind=c_char), pointer :: text(:)
        integer :: status, n
        status = c_attributes(store%handle, trim(path) // c_null_char, bytes)
        if (status /= AMBAR_OK) bytes%len = 0
        allocate (character(bytes%len) :: json)
        if (status == AMBAR_OK) then
            call c_f_pointer(bytes%data, text, [bytes%len])
            do n = 1, size(text)
                json(n:n) = text(n)
            end do
            call c_bytes_free(bytes)
        end if
        call concluded(status, ierr)
    end subroutine

    subroutine free_store(store)
        type(ambar_store), intent(inout) :: store
        call c_store_free(store%handle)
        store%handle = c_null_ptr
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
            call refused(AMBAR_INVALID, trim(path) // ": values of another type than the array's", ierr)
        else if (size(start) /= size(shape) .or. size(count) /= size(shape)) then
            call refused(AMBAR_INVALID, trim(path) // ": start or values have another number of dimensions than the array", ierr)
        else
            call concluded(c_read(store%handle, trim(path) // c_null_char, reversed(start - 1), reversed(count), values, &
                                  product(int(count, c_size_t)) * bytes, 1_c_int32_t), ierr)
        end if
    end subroutine

    subroutine read_int8(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int8), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT8, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_int16(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int16), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT16, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_int32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT32, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_int64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        integer(int64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_INT64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_real32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        real(real32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_FLOAT32, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_real64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        real(real64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_FLOAT64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_complex32(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        complex(real32), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_COMPLEX64, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine

    subroutine read_complex64(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        complex(real64), intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call get(store, path, AMBAR_COMPLEX128, start, shape(values, int64), c_loc(values), storage_size(values) / 8, ierr)
    end subroutine
end module
