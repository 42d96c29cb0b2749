! Writes two steps with one process, without MPI, and reads them.
!
!     alone <store>
program alone
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use ambar
    implicit none
    type(ambar_writer) :: writer
    type(ambar_array) :: array
    type(ambar_store) :: store
    character(1024) :: path
    character(:), allocatable :: group
    real(real64) :: u(3, 2), found
    integer :: step, status
    call get_command_argument(1, path)
    call ambar_create(writer, path)
    do step = 0, 1
        u = reshape([2, 4, 6, 3, 6, 9], [3, 2])
        call ambar_begin_step(writer, "", real(step, real64), group)
        call ambar_define(writer, group // "/u", AMBAR_FLOAT64, [3_int64, 2_int64], array)
        call ambar_write(writer, array, [1_int64, 1_int64], u(:, 1:1))
        call ambar_write(writer, array, [1_int64, 2_int64], u(:, 2:2))
        ! Of these the second is not written.
        call ambar_define(writer, group // "/v", AMBAR_INT32, [2_int64], array, fill_value=-7)
        call ambar_write(writer, array, [1_int64], [5])
        call ambar_commit(writer)
    end do
    ! What could not be written is missing to the commit.
    call ambar_define(writer, "late", AMBAR_FLOAT32, [3_int64], array)
    call ambar_write(writer, array, [1_int64], u(:, 1), status)
    if (status /= AMBAR_INVALID .or. index(ambar_last_error(), "another type") == 0) error stop "another type"
    call ambar_commit(writer, status)
    if (status /= AMBAR_INVALID) error stop "a commit without values"
    call ambar_close(writer)
    call ambar_create(writer, path, ierr=status)
    if (status /= AMBAR_EXISTS) error stop "a file was replaced"
    call ambar_open(store, path)
    u = 0
    call ambar_read(store, "step_000001/u", [2_int64, 1_int64], u(2:2, :))
    if (any(abs(u(2, :) - [4, 6]) > 0) .or. any(abs(u(1:3:2, :)) > 0)) error stop "other values"
    call ambar_read(store, "step_000001/u", [1_int64], found, status)
    if (status /= AMBAR_INVALID) error stop "another number of dimensions"
    call ambar_free(store)
    ! An output is replaced by one of the same name only.
    call ambar_append(writer, path)
    call ambar_begin_output(writer, 7, "plt00007", group, status)
    if (status /= AMBAR_INVALID) error stop "outputs in a series of steps"
    call ambar_close(writer)
    call ambar_create(writer, trim(path) // ".outputs")
    do step = 1, 2
        call ambar_begin_output(writer, 7, group=group)
        if (group /= "output_00007") error stop "another path"
        call ambar_define(writer, group // "/n", AMBAR_INT32, [1_int64], array)
        call ambar_write(writer, array, [1_int64], [step])
        call ambar_commit(writer)
    end do
    call ambar_begin_output(writer, 7, "plt00007", group, status)
    if (status /= AMBAR_INVALID .or. index(ambar_last_error(), "plt00007") == 0) error stop "another name"
    call ambar_begin_output(writer, -1, group=group, ierr=status)
    if (status /= AMBAR_INVALID) error stop "a negative number"
    call ambar_close(writer)
end program
