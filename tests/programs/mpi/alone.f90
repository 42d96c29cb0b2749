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
    type(ambar_settings) :: settings
    character(1024) :: path
    character(:), allocatable :: group, codecs
    real(real64), allocatable, target :: wide(:, :)
    real(real64) :: u(3, 2), found
    integer :: n, step, status
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
    ! A thread writes borrowed values, in codecs that were chosen by a sample of them.
    settings%queue_bytes = 2**16
    call ambar_create(writer, trim(path) // ".borrowed", settings)
    allocate (wide(200, 300))
    do step = 1, 300
        wide(:, step) = [(sin(0.01_real64 * (step + n)), n=1, 200)]
    end do
    call ambar_choose_codecs(wide(:, :100), [200_int64, 300_int64], codecs, AMBAR_SMALL)
    if (index(codecs, '"name"') == 0) error stop "no codecs"
    call ambar_define(writer, "wide", AMBAR_FLOAT64, [200_int64, 300_int64], array, codecs=codecs)
    call ambar_write_borrowed(writer, array, [1_int64, 1_int64], wide)
    call ambar_commit_begin(writer)
    call ambar_commit_wait(writer)
    wide = 0
    call ambar_define(writer, "rows", AMBAR_FLOAT64, [100_int64, 300_int64], array)
    call ambar_write_borrowed(writer, array, [1_int64, 1_int64], wide(::2, :), status)
    if (status /= AMBAR_INVALID .or. index(ambar_last_error(), "contiguous") == 0) error stop "a copy was borrowed"
    call ambar_choose_codecs(wide, [200_int64], codecs, ierr=status)
    if (status /= AMBAR_INVALID .or. codecs /= "") error stop "a sample of another rank"
    call ambar_close(writer)
    call ambar_open(store, trim(path) // ".borrowed")
    call ambar_read(store, "wide", [1_int64, 1_int64], wide)
    if (abs(wide(7, 30) - sin(0.37_real64)) > 0) error stop "other borrowed values"
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
