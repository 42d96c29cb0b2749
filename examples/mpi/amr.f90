! An adaptive mesh of two levels and its particles, by any number of MPI ranks, as steps of one store: while the next output is
! computed, the last one is encoded and written.
!
!     mpirun -n 4 ./amr run.ambar 3    3 outputs, which ambar.open reads as those of a converted run
program amr_run
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
    use ambar
    use ambar_mpi
    implicit none
    integer, parameter :: N = 16                    ! cells of a box in each dimension
    type(ambar_writer) :: writer
    type(ambar_settings) :: settings
    type(ambar_level) :: levels(2)
    type(ambar_field) :: fields(2), columns(4)
    type(ambar_amr) :: amr
    type(ambar_particles) :: stars
    character(:), allocatable :: group
    character(1024) :: path, outputs
    integer :: rank, ranks, ierror, output

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call get_command_argument(1, path)
    call get_command_argument(2, outputs)

    ! Eight boxes of the unit cube, and one in its middle on a finer level.
    levels(1)%last = 2 * N - 1
    levels(1)%cell_size = 0.5_real64 / N
    levels(1)%boxes = eight_boxes()
    levels(1)%ranks = [(mod(output, ranks), output=0, 7)]
    levels(2)%last = 4 * N - 1
    levels(2)%cell_size = 0.25_real64 / N
    levels(2)%boxes = reshape([[3, 3, 3] * N / 2, [5, 5, 5] * N / 2 - 1] * 1_int64, [6, 1])
    levels(2)%ranks = [ranks - 1]
    fields(1)%name = "density"
    fields(1)%error_bound = "1e-4 relative"
    fields(2)%name = "temperature"
    columns(1)%name = "position_x"
    columns(2)%name = "position_y"
    columns(3)%name = "position_z"
    columns(4)%name = "id"
    columns(4)%type = AMBAR_INT64

    settings%queue_bytes = 256 * 2_int64**20
    call ambar_mpi_create(writer, MPI_COMM_WORLD, path, settings)
    do output = 1, number(outputs)
        if (output > 1) call ambar_mpi_commit_wait(writer)
        call ambar_begin_output(writer, 10 * output, plotfile(output), group)
        call write_output(0.5_real64 * output)
        call ambar_mpi_commit_begin(writer)
        ! Here the program computes the next output.
    end do
    if (number(outputs) > 0) call ambar_mpi_commit_wait(writer)
    call ambar_mpi_close(writer)
    call MPI_Finalize(ierror)

contains

    subroutine write_output(time)
        real(real64), intent(in) :: time
        integer(int64) :: counts(ranks), id
        real(real64), allocatable :: place(:, :)
        integer :: level, box, d
        call ambar_amr_define(writer, group // "/amr", [0.0_real64, 0.0_real64, 0.0_real64], &
                              [1.0_real64, 1.0_real64, 1.0_real64], levels, fields, amr, covered=AMBAR_COVERED_KEEP)
        do level = 1, 2
            do box = 1, size(levels(level)%ranks)
                if (levels(level)%ranks(box) == rank) call write_box(level, box, time)
            end do
        end do
        ! Rank i has 100 (i + 1) particles.
        counts = [(100_int64 * d, d=1, ranks)]
        id = sum(counts(:rank))
        place = reshape([(mod(0.618_real64 * d * d, 1.0_real64), d=int(3 * id + 1), int(3 * (id + counts(rank + 1))))], &
                        [3, int(counts(rank + 1))])
        call ambar_particles_define(writer, group // "/particles/stars", counts, columns, &
                                    [0.0_real64, 0.0_real64, 0.0_real64], 1.0_real64, stars, rank)
        do d = 1, 3
            call ambar_particles_write(stars, writer, d, place(d, :))
        end do
        call ambar_particles_write(stars, writer, 4, [(id + d, d=1, int(counts(rank + 1)))])
        call ambar_amr_snapshot(writer, group, amr, plotfile(output), time, [output, 2 * output] * 1_int64, [stars])
        call ambar_particles_end(stars, writer)
        call ambar_amr_end(amr, writer)
    end subroutine

    ! The values of a box, with a ghost cell on each side, which is not written.
    subroutine write_box(level, box, time)
        integer, intent(in) :: level, box
        real(real64), intent(in) :: time
        real(real64) :: u(0:N + 1, 0:N + 1, 0:N + 1), x(3)
        integer :: i, j, k
        u = -1
        do k = 1, N
            do j = 1, N
                do i = 1, N
                    x = (levels(level)%boxes(:3, box) + [i, j, k] - 0.5_real64) * levels(level)%cell_size
                    u(i, j, k) = time + x(1) + 2 * x(2) + 4 * x(3)
                end do
            end do
        end do
        call ambar_amr_write(amr, writer, level, box, 1, u(1:N, 1:N, 1:N))
        call ambar_amr_write(amr, writer, level, box, 2, 100 * u(1:N, 1:N, 1:N))
    end subroutine

    function eight_boxes() result(boxes)
        integer(int64) :: boxes(6, 8), first(3)
        integer :: box
        do box = 0, 7
            first = N * [mod(box, 2), mod(box / 2, 2), box / 4]
            boxes(:, box + 1) = [first, first + N - 1]
        end do
    end function

    function plotfile(output) result(name)
        integer, intent(in) :: output
        character(8) :: name
        write (name, "(a, i5.5)") "plt", 10 * output
    end function

    integer function number(text)
        character(*), intent(in) :: text
        read (text, *) number
    end function
end program
