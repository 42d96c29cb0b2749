! Attributes, lists, steps, logicals, deletion and commits in the background, by one process without MPI.
!
!     attributes <store>
program attributes
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use ambar
    implicit none
    type(ambar_writer) :: writer
    type(ambar_settings) :: settings
    type(ambar_array) :: array
    type(ambar_store) :: store
    type(ambar_node), allocatable :: nodes(:)
    character(1024) :: path
    character(:), allocatable :: group, text
    logical :: mask(6, 5), found(6, 5), done
    real(real64) :: u(6, 5), time
    real(real64), allocatable :: reals(:)
    integer(int64), allocatable :: longs(:)
    integer(int32), allocatable :: integers(:)
    integer(int64) :: long
    integer :: step, status, count, i
    call get_command_argument(1, path)
    u = reshape([(0.5_real64 * i, i=1, 30)], [6, 5])
    mask = mod(nint(2 * u), 3) == 0

    settings%queue_bytes = 100                       ! less than an array: one waits for the other
    call ambar_create(writer, path, settings)
    do step = 1, 3
        call ambar_begin_step(writer, "run", 0.25_real64 * step, group)
        call ambar_define(writer, group // "/u", AMBAR_FLOAT64, [6_int64, 5_int64], array, dimension_names="x, y", &
                          profile=AMBAR_RAW)
        ! Sections that are not contiguous: every second row, and the others backwards.
        call ambar_write(writer, array, [1_int64, 1_int64], u(:, 1:1))
        call ambar_write(writer, array, [1_int64, 2_int64], u(1:3, 2:5))
        call ambar_write(writer, array, [4_int64, 2_int64], u(6:4:-1, 5:2:-1))
        call ambar_define(writer, group // "/mask", AMBAR_BOOL, [12_int64, 5_int64], array, fill_value=.true.)
        call ambar_write(writer, array, [1_int64, 1_int64], mask(:, :))
        call ambar_set_attribute(writer, group, "cycle", step)
        call ambar_set_attribute(writer, group // "/u", "units", "K  ")
        call ambar_set_attribute(writer, group // "/u", "origin", [1.5_real32, -2.0_real32])
        call ambar_set_attribute(writer, group // "/u", "counts", [2_int64**40, 3_int64])
        call ambar_set_attribute(writer, group // "/u", "is_old", .false.)
        call ambar_set_attribute(writer, group // "/u", "flags", [.true., .false.])
        call ambar_commit_begin(writer)
        call ambar_commit_test(writer, done)
        call ambar_commit_wait(writer)
        call ambar_commit_test(writer, done)
        if (.not. done) error stop "the commit has not ended"
    end do
    call ambar_delete(writer, "run/step_000001/mask")
    call ambar_commit(writer)
    call ambar_commit_wait(writer, status)
    if (status /= AMBAR_INVALID .or. index(ambar_last_error(), "no commit was begun") == 0) error stop "a wait for nothing"
    call ambar_close(writer)

    call ambar_open(store, path)
    call ambar_list(store, "run/step_000000", nodes)
    if (size(nodes) /= 2 .or. .not. all(nodes%is_array)) error stop "other children"
    if (nodes(1)%name // nodes(2)%name /= "masku" .and. nodes(1)%name // nodes(2)%name /= "umask") error stop "other names"
    call ambar_list(store, "run/step_000001", nodes)
    if (size(nodes) /= 1) error stop "an array that was deleted"
    call ambar_list(store, "", nodes)
    if (size(nodes) /= 1 .or. nodes(1)%is_array .or. nodes(1)%name /= "run") error stop "another root"
    call ambar_step_count(store, "run", count)
    if (count /= 3) error stop "another number of steps"
    do step = 1, count
        call ambar_step(store, "run", step, time, group)
        if (abs(time - 0.25_real64 * step) > 0) error stop "another time"
        call ambar_attribute(store, group, "cycle", i)
        if (i /= step) error stop "another cycle"
    end do
    if (group /= "run/step_000002") error stop "another path"
    call ambar_step(store, "run", 4, time, group, status)
    if (status /= AMBAR_NOT_FOUND) error stop "a step that does not exist"
    call ambar_step_count(store, "", count, status)
    if (status /= AMBAR_INVALID) error stop "no series"
    call ambar_attribute(store, "run/step_000002/u", "units", text)
    if (text /= "K") error stop "another unit"
    call ambar_attribute(store, "run/step_000002/u", "origin", reals)
    if (any(abs(reals - [1.5, -2.0]) > 0)) error stop "another origin"
    call ambar_attribute(store, "run/step_000002/u", "counts", longs)
    if (any(longs /= [2_int64**40, 3_int64])) error stop "other counts"
    call ambar_attribute(store, "run/step_000002/u", "is_old", done)
    if (done) error stop "another logical"
    call ambar_attribute(store, "run/step_000002/u", "flags", integers)
    if (any(integers /= [1, 0])) error stop "other flags"
    call ambar_attribute(store, "run", "ambar/times", reals)
    if (any(abs(reals - [0.25, 0.5, 0.75]) > 0)) error stop "other times"
    call ambar_attribute(store, "run/step_000002/u", "origin", long, status)
    if (status /= AMBAR_INVALID) error stop "a number of an attribute with two"
    call ambar_attribute(store, "run/step_000002/u", "none", long, status)
    if (status /= AMBAR_NOT_FOUND .or. index(ambar_last_error(), "is_old") == 0) error stop "an attribute that does not exist"
    call ambar_dimension_names(store, "run/step_000002/u", text)
    if (text /= "x,y") error stop "other names of dimensions"
    call ambar_codecs(store, "run/step_000002/u", text)
    if (index(text, "crc32c") == 0) error stop "other codecs"
    found = .false.
    call ambar_read(store, "run/step_000002/mask", [2_int64, 1_int64], found(1:5:2, :))
    if (any(found(1:5:2, :) .neqv. mask(2:4, :)) .or. any(found(2:6:2, :))) error stop "other logicals"
    call ambar_read(store, "run/step_000002/mask", [7_int64, 1_int64], found)
    if (.not. all(found)) error stop "another fill value"
    call ambar_free(store)
end program
