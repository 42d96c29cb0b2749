!> Attributes of stores that are being written, and deletion; programs use the module ambar.
module ambar_writing
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
    use ambar_c
    implicit none
    private

    public :: ambar_writer, ambar_set_attribute, ambar_set_attributes, ambar_delete

    !> A store open for writing, as seen by this process.
    type :: ambar_writer
        type(c_ptr) :: handle = c_null_ptr
        type(c_ptr) :: ranks = c_null_ptr ! of ambar_mpi
    end type

    !> Sets one attribute of a group ("": the root) or an array, and keeps the others:
    !! call ambar_set_attribute(writer, path, name, value [, ierr]), where value is a scalar or an array of one dimension of
    !! integer(int32), integer(int64), real(real32), real(real64) or logical, or a string, whose trailing blanks are left out.
    !! Of many ranks, only the call on rank 0 has an effect.
    interface ambar_set_attribute
        module procedure set_int32, set_int32s, set_int64, set_int64s, set_real32, &
            set_real32s, set_real64, set_real64s, set_logical, set_logicals, &
            set_text
    end interface

contains

    !> Replaces all attributes of a group ("": the root) or an array by those of a JSON object. Of many ranks, only the call on
    !! rank 0 has an effect.
    subroutine ambar_set_attributes(writer, path, attributes, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, attributes
        integer, intent(out), optional :: ierr
        call concluded(c_set_attributes(writer%handle, trim(path) // c_null_char, trim(attributes) // c_null_char), ierr)
    end subroutine

    !> Deletes a group with everything in it, or an array, with the next commit. Of many ranks, only the call on rank 0 has an
    !! effect.
    subroutine ambar_delete(writer, path, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call concluded(c_delete(writer%handle, trim(path) // c_null_char), ierr)
    end subroutine

    subroutine set_text(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name, value
        integer, intent(out), optional :: ierr
        call concluded(c_set_text(writer%handle, trim(path) // c_null_char, trim(name) // c_null_char, &
                                  trim(value) // c_null_char), ierr)
    end subroutine

    subroutine store_integers(writer, path, name, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer(int64), intent(in), target, contiguous :: values(:)
        integer, intent(out), optional :: ierr
        call set_numbers(writer, path, name, AMBAR_INT64, c_loc(values), size(values), ierr)
    end subroutine

    subroutine store_reals(writer, path, name, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        real(real64), intent(in), target, contiguous :: values(:)
        integer, intent(out), optional :: ierr
        call set_numbers(writer, path, name, AMBAR_FLOAT64, c_loc(values), size(values), ierr)
    end subroutine

    subroutine store_logicals(writer, path, name, values, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        logical, intent(in) :: values(:)
        integer, intent(out), optional :: ierr
        integer(int8), target :: bytes(max(size(values), 1))
        bytes(:size(values)) = merge(1_int8, 0_int8, values)
        call set_numbers(writer, path, name, AMBAR_BOOL, c_loc(bytes), size(values), ierr)
    end subroutine

    subroutine set_numbers(writer, path, name, type, values, count, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer, intent(in) :: type, count
        type(c_ptr), intent(in) :: values
        integer, intent(out), optional :: ierr
        call concluded(c_set_numbers(writer%handle, trim(path) // c_null_char, trim(name) // c_null_char, type, values, &
                                     int(count, c_size_t)), ierr)
    end subroutine

    subroutine set_int32(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer(int32), intent(in) :: value
        integer, intent(out), optional :: ierr
        call store_integers(writer, path, name, int([value], int64), ierr)
    end subroutine

    subroutine set_int32s(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer(int32), intent(in) :: value(:)
        integer, intent(out), optional :: ierr
        call store_integers(writer, path, name, int(value, int64), ierr)
    end subroutine

    subroutine set_int64(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer(int64), intent(in) :: value
        integer, intent(out), optional :: ierr
        call store_integers(writer, path, name, int([value], int64), ierr)
    end subroutine

    subroutine set_int64s(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        integer(int64), intent(in) :: value(:)
        integer, intent(out), optional :: ierr
        call store_integers(writer, path, name, int(value, int64), ierr)
    end subroutine

    subroutine set_real32(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        real(real32), intent(in) :: value
        integer, intent(out), optional :: ierr
        call store_reals(writer, path, name, real([value], real64), ierr)
    end subroutine

    subroutine set_real32s(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        real(real32), intent(in) :: value(:)
        integer, intent(out), optional :: ierr
        call store_reals(writer, path, name, real(value, real64), ierr)
    end subroutine

    subroutine set_real64(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        real(real64), intent(in) :: value
        integer, intent(out), optional :: ierr
        call store_reals(writer, path, name, real([value], real64), ierr)
    end subroutine

    subroutine set_real64s(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        real(real64), intent(in) :: value(:)
        integer, intent(out), optional :: ierr
        call store_reals(writer, path, name, real(value, real64), ierr)
    end subroutine

    subroutine set_logical(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        logical, intent(in) :: value
        integer, intent(out), optional :: ierr
        call store_logicals(writer, path, name, [value], ierr)
    end subroutine

    subroutine set_logicals(writer, path, name, value, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        logical, intent(in) :: value(:)
        integer, intent(out), optional :: ierr
        call store_logicals(writer, path, name, value, ierr)
    end subroutine
end module
