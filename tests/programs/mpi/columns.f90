! Writes and reads arrays of 1 to 4 dimensions from Fortran: by all ranks, with other blocks than they were written with.
!
!     columns <store>
program columns
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use mpi
    use ambar
    use ambar_mpi
    implicit none
    integer(int64), parameter :: nx = 50, ny = 31, nz = 12, nt = 5
    type(ambar_writer) :: writer
    type(ambar_array) :: line, plane, cube, all
    type(ambar_blocks) :: blocks
    type(ambar_store) :: store
    type(ambar_settings) :: settings
    character(1024) :: path
    character(:), allocatable :: json
    real(real64), allocatable :: u(:, :, :, :), read_u(:, :, :, :)
    real(real32), allocatable :: p(:, :), read_p(:, :)
    integer(int64), allocatable :: shape(:)
    integer :: rank, ranks, ierror, i, j, k, status
    integer(int64) :: first, count

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call get_command_argument(1, path)
    first = ny * rank / ranks + 1
    count = ny * (rank + 1) / ranks - first + 1

    ! Whole arrays, of which each rank writes its second dimension's part; with a frame that is not written.
    allocate (u(0:nx + 1, 0:ny + 1, nz, nt), p(nx, ny))
    do k = 1, int(nz)
        do j = 1, int(ny)
            do i = 1, int(nx)
                u(i, j, k, :) = [(1000000.0_real64 * i + 1000 * j + k + status / 8.0_real64, status=1, int(nt))]
            end do
        end do
    end do
    do j = 1, int(ny)
        p(:, j) = [(real(100 * i + j, real32), i=1, int(nx))]
    end do
    settings%placement = AMBAR_RESERVED
    call ambar_mpi_create(writer, MPI_COMM_WORLD, path, settings)
    call ambar_group(writer, "run", '{"code": "columns"}')

    call held([ny], [first], [count])
    call ambar_define(writer, "run/line", AMBAR_INT32, [ny], line, blocks, profile=AMBAR_FAST)
    call ambar_write(writer, line, [first], [(int(10 * j, int32), j=int(first), int(first + count - 1))])
    call ambar_free(blocks)
    call held([nx, ny], [1_int64, first], [nx, count])
    call ambar_define(writer, "run/plane", AMBAR_FLOAT32, [nx, ny], plane, blocks, dimension_names="x, y", &
                      chunks=[25_int64, 10_int64])
    call ambar_write(writer, plane, [1_int64, first], p(:, first:first + count - 1))
    call ambar_free(blocks)
    call held([nx, ny, nz], [1_int64, first, 1_int64], [nx, count, nz])
    call ambar_define(writer, "run/cube", AMBAR_FLOAT64, [nx, ny, nz], cube, blocks, &
                      error_bound="1e-8 of range", value_range=[1001001.125_real64, 50031012.125_real64])
    call ambar_write(writer, cube, [1_int64, first, 1_int64], u(1:nx, first:first + count - 1, :, 1))
    call ambar_free(blocks)
    call held([nx, ny, nz, nt], [1_int64, first, 1_int64, 1_int64], [nx, count, nz, nt])
    call ambar_define(writer, "run/all", AMBAR_FLOAT64, [nx, ny, nz, nt], all, blocks)
    call ambar_write(writer, all, [1_int64, first, 1_int64, 1_int64], u(1:nx, first:first + count - 1, :, :))
    call ambar_free(blocks)

    call ambar_mpi_commit(writer)
    call ambar_mpi_close(writer)

    ! By other blocks: of the first dimension.
    first = nx * rank / ranks + 1
    count = nx * (rank + 1) / ranks - first + 1
    call ambar_open(store, path)
    call ambar_shape(store, "run/all", shape)
    if (any(shape /= [nx, ny, nz, nt])) error stop "another shape"
    allocate (read_u(count, ny, nz, nt), read_p(0:count + 1, ny))
    read_p = -1
    call ambar_read(store, "run/all", [first, 1_int64, 1_int64, 1_int64], read_u)
    if (any(abs(read_u - u(first:first + count - 1, 1:ny, :, :)) > 0)) error stop "other values"
    call ambar_read(store, "run/plane", [first, 1_int64], read_p(1:count, :))
    if (any(abs(read_p(1:count, :) - p(first:first + count - 1, :)) > 0)) error stop "other values of single precision"
    if (any(abs(read_p(0, :) + 1) > 0)) error stop "values outside of what was asked for"
    call ambar_read(store, "run/none", [first], read_p(:, 1), status)
    if (status /= AMBAR_NOT_FOUND .or. index(ambar_last_error(), "run/none") == 0) error stop "an array that is not there"
    call ambar_attributes(store, "run", json)
    if (index(json, "columns") == 0) error stop "no attributes"
    call ambar_free(store)
    call MPI_Finalize(ierror)

contains

    subroutine held(lengths, start, own)
        integer(int64), intent(in) :: lengths(:), start(:), own(:)
        call ambar_mpi_blocks(MPI_COMM_WORLD, lengths, reshape(start, [size(start), 1]), &
                              reshape(own, [size(own), 1]), blocks)
    end subroutine
end program
