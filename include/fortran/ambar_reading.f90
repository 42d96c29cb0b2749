!> Reading stores of ambar from Fortran; programs use the module ambar.
module ambar_reading
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use ambar_c
    implicit none
    private

    public :: ambar_store, ambar_open, ambar_free, ambar_shape, ambar_read, ambar_attribute, ambar_attributes
    public :: ambar_list, ambar_node, ambar_codecs, ambar_dimension_names, ambar_step, ambar_step_count

    !> A store open for reading.
    type :: ambar_store
        type(c_ptr) :: handle = c_null_ptr
    end type

    !> A child of a group.
    type :: ambar_node
        character(:), allocatable :: name
        logical :: is_array = .false.
    end type

    !> Reads an attribute: call ambar_attribute(store, path, name, value [, ierr]), where value is a scalar or an allocatable
    !! array of one dimension of integer(int32), integer(int64), real(real64) or logical (scalar), or an allocatable string.
    !! name is a key; slashes separate the keys of nested objects. An attribute that is not a string is JSON as a string.
    interface ambar_attribute
        module procedure attribute_int32, attribute_int64, attribute_real64, attribute_logical, attribute_text, &
            attribute_int32s, attribute_int64s, attribute_real64s
    end interface

    !> Reads values: call ambar_read(store, path, start, values [, ierr]). Decodes only chunks that overlap the region.
    interface ambar_read
        module procedure read_int8, read_int16, read_int32, read_int64, &
            read_real32, read_real64, read_complex32, read_complex64, read_logical
    end interface

    !> Closes a store that was opened for reading: call ambar_free(store).
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
        integer :: status
        json = ""
        status = c_attributes(store%handle, trim(path) // c_null_char, bytes)
        if (status == AMBAR_OK) json = taken_bytes(bytes)
        call concluded(status, ierr)
    end subroutine

    !> Returns the children of a group ("": the root).
    subroutine ambar_list(store, path, nodes, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        type(ambar_node), allocatable, intent(out) :: nodes(:)
        integer, intent(out), optional :: ierr
        type(c_bytes) :: names, kinds
        character(kind=c_char), pointer :: text(:), letters(:)
        integer(c_int64_t) :: count
        integer :: status, n, at, length
        count = 0
        status = c_children(store%handle, trim(path) // c_null_char, count, names, kinds)
        if (status /= AMBAR_OK) count = 0
        allocate (nodes(count))
        if (count > 0) then
            call c_f_pointer(names%data, text, [names%len])
            call c_f_pointer(kinds%data, letters, [kinds%len])
            at = 1
            do n = 1, size(nodes)
                nodes(n)%name = text_of(c_loc(text(at)))
                nodes(n)%is_array = letters(n) == "a"
                length = len(nodes(n)%name)
                at = at + length + 1
            end do
            call c_bytes_free(names)
            call c_bytes_free(kinds)
        end if
        call concluded(status, ierr)
    end subroutine

    !> Returns the names of the dimensions of an array in Fortran order, separated by commas.
    subroutine ambar_dimension_names(store, path, names, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        character(:), allocatable, intent(out) :: names
        integer, intent(out), optional :: ierr
        type(c_bytes) :: bytes
        integer :: status
        names = ""
        status = c_dimension_names(store%handle, trim(path) // c_null_char, bytes)
        if (status == AMBAR_OK) names = last_name_first(taken(bytes))
        call concluded(status, ierr)
    end subroutine

    !> Returns a short description of the codecs of an array, such as "pcodec 8, crc32c".
    subroutine ambar_codecs(store, path, codecs, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        character(:), allocatable, intent(out) :: codecs
        integer, intent(out), optional :: ierr
        type(c_bytes) :: bytes
        integer :: status
        codecs = ""
        status = c_codecs(store%handle, trim(path) // c_null_char, bytes)
        if (status == AMBAR_OK) codecs = taken(bytes)
        call concluded(status, ierr)
    end subroutine

    !> Returns the number of steps of the series at `series` ("": the root).
    subroutine ambar_step_count(store, series, count, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: series
        integer, intent(out) :: count
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: found
        integer :: status
        found = 0
        status = c_step_count(store%handle, trim(series) // c_null_char, found)
        count = int(found)
        call concluded(status, ierr)
    end subroutine

    !> Returns the time of step `number`, from 1 on, of the series at `series`, NaN if it is not known, and the path of its group.
    subroutine ambar_step(store, series, number, time, group, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: series
        integer, intent(in) :: number
        real(real64), intent(out) :: time
        character(:), allocatable, intent(out) :: group
        integer, intent(out), optional :: ierr
        character(kind=c_char), target :: room(4096)
        integer :: status
        room = c_null_char
        time = 0
        status = c_step(store%handle, trim(series) // c_null_char, number - 1_c_int64_t, time, room, size(room, kind=c_size_t))
        group = text_of(c_loc(room))
        call concluded(status, ierr)
    end subroutine

    ! The numbers of an attribute, of the type AMBAR_INT64 or AMBAR_FLOAT64, as bits of 64-bit numbers.
    subroutine numbers_of(store, path, name, type, values, status)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer, intent(in) :: type
        integer(int64), allocatable, target, intent(out) :: values(:)
        integer, intent(out) :: status
        integer(c_size_t) :: count, again
        count = 0
        again = 0
        allocate (values(0))
        status = c_get_numbers(store%handle, trim(path) // c_null_char, trim(name) // c_null_char, type, c_null_ptr, &
                               0_c_size_t, count)
        if (status /= AMBAR_OK .or. count == 0) return
        deallocate (values)
        allocate (values(count))
        status = c_get_numbers(store%handle, trim(path) // c_null_char, trim(name) // c_null_char, type, c_loc(values), &
                               count, again)
    end subroutine

    ! The only number of an attribute.
    subroutine number_of(store, path, name, type, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer, intent(in) :: type
        integer(int64), intent(out) :: value
        integer, intent(out), optional :: ierr
        integer(int64), allocatable :: values(:)
        integer :: status
        call numbers_of(store, path, name, type, values, status)
        value = 0
        if (status == AMBAR_OK .and. size(values) /= 1) then
            call refused(AMBAR_INVALID, trim(name) // ": expected one number, found a list; read it into an array", ierr)
            return
        end if
        if (status == AMBAR_OK) value = values(1)
        call concluded(status, ierr)
    end subroutine

    subroutine attribute_int32(store, path, name, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer(int32), intent(out) :: value
        integer, intent(out), optional :: ierr
        integer(int64) :: found
        call number_of(store, path, name, AMBAR_INT64, found, ierr)
        value = int(found, int32)
    end subroutine

    subroutine attribute_int64(store, path, name, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer(int64), intent(out) :: value
        integer, intent(out), optional :: ierr
        call number_of(store, path, name, AMBAR_INT64, value, ierr)
    end subroutine

    subroutine attribute_real64(store, path, name, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        real(real64), intent(out) :: value
        integer, intent(out), optional :: ierr
        integer(int64) :: found
        call number_of(store, path, name, AMBAR_FLOAT64, found, ierr)
        value = transfer(found, value)
    end subroutine

    subroutine attribute_logical(store, path, name, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        logical, intent(out) :: value
        integer, intent(out), optional :: ierr
        integer(int64) :: found
        call number_of(store, path, name, AMBAR_INT64, found, ierr)
        value = found /= 0
    end subroutine

    subroutine attribute_text(store, path, name, value, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        character(:), allocatable, intent(out) :: value
        integer, intent(out), optional :: ierr
        type(c_bytes) :: bytes
        integer :: status
        value = ""
        status = c_get_text(store%handle, trim(path) // c_null_char, trim(name) // c_null_char, bytes)
        if (status == AMBAR_OK) value = taken(bytes)
        call concluded(status, ierr)
    end subroutine

    subroutine attribute_int32s(store, path, name, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer(int32), allocatable, intent(out) :: values(:)
        integer, intent(out), optional :: ierr
        integer(int64), allocatable :: found(:)
        integer :: status
        call numbers_of(store, path, name, AMBAR_INT64, found, status)
        values = int(found, int32)
        call concluded(status, ierr)
    end subroutine

    subroutine attribute_int64s(store, path, name, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        integer(int64), allocatable, intent(out) :: values(:)
        integer, intent(out), optional :: ierr
        integer :: status
        call numbers_of(store, path, name, AMBAR_INT64, values, status)
        call concluded(status, ierr)
    end subroutine

    subroutine attribute_real64s(store, path, name, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path, name
        real(real64), allocatable, intent(out) :: values(:)
        integer, intent(out), optional :: ierr
        integer(int64), allocatable :: found(:)
        integer :: status
        call numbers_of(store, path, name, AMBAR_FLOAT64, found, status)
        values = transfer(found, [0.0_real64], size(found))
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

    subroutine read_logical(store, path, start, values, ierr)
        type(ambar_store), intent(in) :: store
        character(*), intent(in) :: path
        integer(int64), intent(in) :: start(:)
        logical, intent(inout), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        logical, pointer :: all(:)
        integer(int8), allocatable, target :: bytes(:)
        integer :: status
        call c_f_pointer(c_loc(values), all, [size(values)])
        allocate (bytes(max(size(all), 1)))
        call get(store, path, AMBAR_BOOL, start, shape(values, int64), c_loc(bytes), 1, status)
        if (status == AMBAR_OK) all = bytes(:size(all)) /= 0
        call ended(status, ierr)
    end subroutine
end module
