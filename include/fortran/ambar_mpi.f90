!> Writing stores of ambar with many MPI ranks from Fortran, together with the module ambar.
!!
!! comm is an integer as in mpif.h and the module mpi; with mpi_f08 it is comm%mpi_val. All subroutines are collective on
!! comm; if one rank fails, they fail on all. Define and write arrays with ambar_define and ambar_write.
module ambar_mpi
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use ambar
    use ambar_c, only: c_options, concluded, reversed, text_of
    implicit none
    private

    public :: ambar_mpi_create, ambar_mpi_append, ambar_mpi_blocks, ambar_mpi_begin_step, ambar_mpi_commit, ambar_mpi_close
    public :: ambar_mpi_commit_begin, ambar_mpi_commit_wait

    interface
        integer(c_int) function c_start(comm, path, options, append, ranks, writer) bind(c, name="ambar_fortran_start")
            import :: c_char, c_int, c_options, c_ptr
            integer(c_int), value :: comm, append
            character(kind=c_char), intent(in) :: path(*)
            type(c_options), intent(in) :: options
            type(c_ptr), intent(out) :: ranks, writer
        end function
        integer(c_int) function c_blocks(comm, ndim, shape, n, starts, counts, blocks) bind(c, name="ambar_fortran_blocks")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            integer(c_int), value :: comm
            integer(c_int32_t), value :: ndim, n
            integer(c_int64_t), intent(in) :: shape(*), starts(*), counts(*)
            type(c_ptr), intent(out) :: blocks
        end function
        integer(c_int) function c_begin_step(ranks, series, time, path, room) bind(c, name="ambar_fortran_begin_step")
            import :: c_char, c_double, c_int, c_ptr, c_size_t
            type(c_ptr), value :: ranks
            character(kind=c_char), intent(in) :: series(*)
            real(c_double), value :: time
            character(kind=c_char), intent(out) :: path(*)
            integer(c_size_t), value :: room
        end function
        integer(c_int) function c_commit(ranks) bind(c, name="ambar_fortran_commit")
            import :: c_int, c_ptr
            type(c_ptr), value :: ranks
        end function
        integer(c_int) function c_commit_begin(ranks) bind(c, name="ambar_fortran_commit_begin")
            import :: c_int, c_ptr
            type(c_ptr), value :: ranks
        end function
        integer(c_int) function c_commit_wait(ranks) bind(c, name="ambar_fortran_commit_wait")
            import :: c_int, c_ptr
            type(c_ptr), value :: ranks
        end function
        integer(c_int) function c_close(ranks) bind(c, name="ambar_fortran_close")
            import :: c_int, c_ptr
            type(c_ptr), value :: ranks
        end function
    end interface

contains

    !> Creates a store that all ranks write. path and settings are those of rank 0. The store appears under its name with
    !! the first commit.
    subroutine ambar_mpi_create(writer, comm, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        integer, intent(in) :: comm
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_start(comm, trim(path) // c_null_char, settled(settings), 0_c_int, writer%ranks, &
                               writer%handle), ierr)
    end subroutine

    !> Opens a store for appending, on any number of ranks.
    subroutine ambar_mpi_append(writer, comm, path, settings, ierr)
        type(ambar_writer), intent(out) :: writer
        integer, intent(in) :: comm
        character(*), intent(in) :: path
        type(ambar_settings), intent(in), optional :: settings
        integer, intent(out), optional :: ierr
        call concluded(c_start(comm, trim(path) // c_null_char, settled(settings), 1_c_int, writer%ranks, &
                               writer%handle), ierr)
    end subroutine

    !> Creates a decomposition of arrays of one shape: column n of starts and counts is block n of this rank. A rank may have
    !! no blocks, starts(ndim, 0), or empty ones. Release it with ambar_free.
    subroutine ambar_mpi_blocks(comm, shape, starts, counts, blocks, ierr)
        integer, intent(in) :: comm
        integer(int64), intent(in) :: shape(:), starts(:, :), counts(:, :)
        type(ambar_blocks), intent(out) :: blocks
        integer, intent(out), optional :: ierr
        integer(c_int64_t), allocatable :: c_starts(:), c_counts(:)
        integer :: n, at
        allocate (c_starts(size(starts)), c_counts(size(starts)))
        do n = 1, size(starts, 2)
            at = (n - 1) * size(shape)
            c_starts(at + 1:at + size(shape)) = reversed(starts(:, n) - 1)
            c_counts(at + 1:at + size(shape)) = reversed(counts(:, n))
        end do
        call concluded(c_blocks(comm, size(shape, kind=c_int32_t), reversed(shape), size(starts, 2, c_int32_t), c_starts, &
                                c_counts, blocks%handle), ierr)
    end subroutine

    !> Begins the next step of the series at `series` ("": the root), and returns the path of its group.
    subroutine ambar_mpi_begin_step(writer, series, time, group, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: series
        real(real64), intent(in) :: time
        character(:), allocatable, intent(out) :: group
        integer, intent(out), optional :: ierr
        character(kind=c_char), target :: room(4096)
        integer :: status
        room = c_null_char
        status = c_begin_step(writer%ranks, trim(series) // c_null_char, time, room, size(room, kind=c_size_t))
        group = text_of(c_loc(room))
        call concluded(status, ierr)
    end subroutine

    !> Makes everything that all ranks have written visible and durable, or nothing if a rank has failed.
    subroutine ambar_mpi_commit(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit(writer%ranks), ierr)
    end subroutine

    !> Begins a commit of what all ranks have written, and returns while a thread of each rank encodes and writes (with
    !! settings%queue_bytes; otherwise when they are written). Until ambar_mpi_commit_wait, only ambar_commit_test and
    !! ambar_mpi_close may be called on the writer.
    subroutine ambar_mpi_commit_begin(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit_begin(writer%ranks), ierr)
    end subroutine

    !> Ends the commit that ambar_mpi_commit_begin has begun: readers see the values, or nothing if a rank has failed.
    subroutine ambar_mpi_commit_wait(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        call concluded(c_commit_wait(writer%ranks), ierr)
    end subroutine

    !> Releases the writer. Uncommitted data are lost.
    subroutine ambar_mpi_close(writer, ierr)
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        type(c_ptr) :: ranks
        ranks = writer%ranks
        writer%ranks = c_null_ptr
        writer%handle = c_null_ptr
        call concluded(c_close(ranks), ierr)
    end subroutine
end module
