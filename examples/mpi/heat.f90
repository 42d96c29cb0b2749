! The heat equation on a square, by any number of MPI ranks, its steps in one store: heat.cpp in Fortran.
!
!     mpirun -n 4 ./heat heat.ambar 5 256    5 steps of 256 x 256 cells; where the store is there, 5 more
module heat_equation
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
    use ambar
    use ambar_mpi
    implicit none

    integer, parameter :: ITERATIONS = 20     ! between two steps that are written
    real(real64), parameter :: RATE = 0.2_real64 ! of diffusion, in units of cells and iterations

    integer :: rank, ranks, ierror
    integer(int64) :: n, first, columns ! this rank's columns of the square: from `first` on
    real(real64), allocatable :: now(:, :), next(:, :)

contains

    subroutine begin()
        first = n * rank / ranks + 1
        columns = n * (rank + 1) / ranks - first + 1
        allocate (now(0:n + 1, 0:columns + 1), next(0:n + 1, 0:columns + 1), source=0.0_real64)
    end subroutine

    ! A hot square in the middle.
    subroutine heat_up()
        integer(int64) :: column
        do column = 1, columns
            if (first + column - 1 > n / 4 .and. first + column - 1 <= 3 * n / 4) now(n / 4 + 1:3 * n / 4, column) = 1
        end do
    end subroutine

    subroutine iterate()
        integer :: left, right, height
        integer(int64) :: i, j
        left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
        right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
        height = int(n + 2)
        call MPI_Sendrecv(now(0, 1), height, MPI_DOUBLE_PRECISION, left, 0, now(0, columns + 1), height, &
                          MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        call MPI_Sendrecv(now(0, columns), height, MPI_DOUBLE_PRECISION, right, 1, now(0, 0), height, &
                          MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        do j = 1, columns
            do i = 1, n
                next(i, j) = now(i, j) + RATE * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1) - 4 * now(i, j))
            end do
        end do
        now(1:n, 1:columns) = next(1:n, 1:columns)
    end subroutine

    ! The number of steps in the store; the last one's values become the rank's.
    integer function resumed(path) result(steps)
        character(*), intent(in) :: path
        type(ambar_store) :: store
        integer(int64), allocatable :: shape(:)
        character(32) :: name
        integer :: status
        steps = 0
        call ambar_open(store, path, status)
        if (status /= AMBAR_OK) return
        do
            write (name, "('step_', i6.6, '/temperature')") steps
            call ambar_shape(store, name, shape, ierr=status)
            if (status /= AMBAR_OK) exit
            steps = steps + 1
        end do
        write (name, "('step_', i6.6, '/temperature')") steps - 1
        if (steps > 0) call ambar_read(store, name, [1_int64, first], now(1:n, 1:columns))
        call ambar_free(store)
    end function

    subroutine write_step(writer, time)
        type(ambar_writer), intent(inout) :: writer
        real(real64), intent(in) :: time
        type(ambar_blocks) :: blocks
        type(ambar_array) :: temperature
        character(:), allocatable :: group
        integer(int64) :: start(2, 1)
        start(:, 1) = [1_int64, first]
        call ambar_mpi_begin_step(writer, "", time, group)
        call ambar_mpi_blocks(MPI_COMM_WORLD, [n, n], start, reshape([n, columns], [2, 1]), blocks)
        call ambar_define(writer, group // "/temperature", AMBAR_FLOAT64, [n, n], temperature, blocks, &
                          dimension_names="x,y", attributes='{"units": "K"}')
        call ambar_write(writer, temperature, start(:, 1), now(1:n, 1:columns)) ! without the ghost cells
        call ambar_mpi_commit(writer)
        call ambar_free(blocks)
    end subroutine
end module

program heat
    use heat_equation
    implicit none
    type(ambar_writer) :: writer
    character(1024) :: path, text
    integer :: step, last, iteration
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call get_command_argument(1, path)
    call get_command_argument(2, text)
    read (text, *) last
    call get_command_argument(3, text)
    read (text, *) n
    call begin()
    step = resumed(path)
    call MPI_Barrier(MPI_COMM_WORLD, ierror) ! all have looked for the store before it is made
    if (step == 0) then
        call heat_up()
        call ambar_mpi_create(writer, MPI_COMM_WORLD, path)
    else
        call ambar_mpi_append(writer, MPI_COMM_WORLD, path)
    end if
    do step = step, step + last - 1
        do iteration = 1, ITERATIONS
            call iterate()
        end do
        call write_step(writer, ITERATIONS * (step + 1.0_real64))
    end do
    call ambar_mpi_close(writer)
    call MPI_Finalize(ierror)
end program
