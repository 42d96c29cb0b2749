!> Cells of adaptive meshes and particles, written by a running program; programs use the module ambar.
!!
!! Levels, boxes, fields and columns have numbers from 1 on; numbers of ranks begin at 0, as in MPI.
module ambar_in_situ
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use ambar_c
    use ambar_writing, only: ambar_writer
    implicit none
    private

    public :: ambar_amr, ambar_level, ambar_field, ambar_amr_define, ambar_amr_write, ambar_amr_snapshot, ambar_amr_end
    public :: ambar_particles, ambar_particles_define, ambar_particles_write, ambar_particles_end

    !> A level of a hierarchy of boxes, equal on all ranks. Cells have indices in x, y, z; those of dimensions beyond ndim are
    !! ignored.
    type :: ambar_level
        integer(int64) :: first(3) = 0, last(3) = 0     ! the first and the last cell of the domain
        real(real64) :: cell_size(3) = 1
        integer :: ratio(3) = 2                         ! of refinement, to the next level
        integer(int64), allocatable :: boxes(:, :)      ! (6, n): the first and the last cell of each box
        integer, allocatable :: ranks(:)                ! (n): the rank that writes each box; 0 without ranks
    end type

    !> A field of a hierarchy, or a column of particles.
    type :: ambar_field
        character(:), allocatable :: name
        integer :: type = AMBAR_FLOAT64
        character(:), allocatable :: error_bound        ! as of ambar_define; not allocated: lossless
        real(real64), allocatable :: value_range(:)     ! lowest and highest finite value, for bounds that depend on it
    end type

    !> A hierarchy that is being written.
    type :: ambar_amr
        private
        type(c_ptr) :: handle = c_null_ptr
        integer :: ndim = 0
        integer, allocatable :: types(:), first_box(:)
        integer(int64), allocatable :: cells(:, :)      ! of each box
    end type

    !> Particles that are being written.
    type :: ambar_particles
        private
        type(c_ptr) :: handle = c_null_ptr
        integer, allocatable :: types(:)
        integer(int64) :: own = 0
    end type

    !> Writes a field on all cells of a box of this rank, field by field: call
    !! ambar_amr_write(amr, writer, level, box, field, values [, ierr]). values have the shape of the box; a section, such as
    !! u(1:nx, 1:ny, 1:nz), leaves ghost cells out.
    interface ambar_amr_write
        module procedure amr_write_real32, amr_write_real64
    end interface

    !> Writes a column of the particles of this rank: call ambar_particles_write(particles, writer, column, values [, ierr]).
    !! The last column sorts and encodes all columns.
    interface ambar_particles_write
        module procedure particles_write_int32, particles_write_int64, particles_write_real32, particles_write_real64
    end interface

contains

    !> Defines a group of kind amr at `path` with fields on all boxes of `levels`. The domain is from `lower` to `upper`, one
    !! number for each dimension. covered is one of AMBAR_COVERED_...: how cells that the next level covers are stored. All ranks
    !! call it with equal arguments. End the hierarchy with ambar_amr_end.
    subroutine ambar_amr_define(writer, path, lower, upper, levels, fields, amr, profile, covered, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        real(real64), intent(in) :: lower(:), upper(:)
        type(ambar_level), intent(in) :: levels(:)
        type(ambar_field), intent(in) :: fields(:)
        type(ambar_amr), intent(out) :: amr
        integer, intent(in), optional :: profile, covered
        integer, intent(out), optional :: ierr
        type(c_hierarchy) :: hierarchy
        type(c_field) :: c_fields(size(fields))
        character(:, kind=c_char), allocatable, target :: names
        real(c_double), target :: ranges(2, size(fields))
        integer(c_int64_t), target :: domains(6, size(levels))
        real(c_double), target :: sizes(3, size(levels))
        integer(c_int32_t), target :: ratios(3, size(levels)), counts(size(levels))
        integer(c_int64_t), allocatable, target :: corners(:, :)
        integer(c_int32_t), allocatable, target :: ranks(:)
        integer :: n, level, box, at, d, with, treatment
        n = size(lower)
        if (n < 1 .or. n > 3 .or. size(upper) /= n) then
            call refused_for(writer, "expected 1 to 3 numbers in lower and upper, found another number", ierr)
            return
        end if
        do level = 1, size(levels)
            counts(level) = 0
            if (allocated(levels(level)%boxes)) counts(level) = size(levels(level)%boxes, 2, c_int32_t)
        end do
        allocate (corners(6, sum(counts)), ranks(sum(counts)), amr%first_box(size(levels) + 1), amr%cells(3, sum(counts)))
        ranks = 0
        at = 0
        do level = 1, size(levels)
            amr%first_box(level) = at
            domains(:3, level) = levels(level)%first
            domains(4:, level) = levels(level)%last + 1
            sizes(:, level) = levels(level)%cell_size
            ratios(:, level) = levels(level)%ratio
            do box = 1, counts(level)
                at = at + 1
                corners(:, at) = levels(level)%boxes(:, box)
                corners(4:, at) = corners(4:, at) + 1
                if (allocated(levels(level)%ranks)) ranks(at) = levels(level)%ranks(box)
            end do
        end do
        amr%first_box(size(levels) + 1) = at
        do d = n + 1, 3
            domains(d, :) = 0
            domains(3 + d, :) = 1
            corners(d, :) = 0
            corners(3 + d, :) = 1
        end do
        amr%cells = corners(4:, :) - corners(:3, :)
        amr%ndim = n
        amr%types = fields%type
        hierarchy%size = c_sizeof(hierarchy)
        hierarchy%ndim = n
        hierarchy%levels = size(levels)
        hierarchy%lower = 0
        hierarchy%upper = 0
        hierarchy%lower(:n) = lower
        hierarchy%upper(:n) = upper
        hierarchy%domains = c_loc(domains)
        hierarchy%cell_sizes = c_loc(sizes)
        hierarchy%ratios = c_loc(ratios)
        hierarchy%boxes = c_loc(counts)
        hierarchy%corners = c_loc(corners)
        hierarchy%ranks = c_loc(ranks)
        call describe(fields, names, ranges, c_fields)
        with = AMBAR_BALANCED
        if (present(profile)) with = profile
        treatment = AMBAR_COVERED_DEFAULT
        if (present(covered)) treatment = covered
        call concluded(c_amr_define(writer%handle, trim(path) // c_null_char, hierarchy, size(fields, kind=c_int32_t), &
                                    c_fields, with, treatment, amr%handle), ierr)
    end subroutine

    !> Makes the group at `path` ("": the root) a snapshot with the cells `amr`, which are in its group amr, and particles, which
    !! are in its groups particles/<name>. `name` is that of the output, such as "plt00010", and steps are the numbers of steps of
    !! each level. Readers then open it as a converted plotfile. All ranks call it before ambar_amr_end.
    subroutine ambar_amr_snapshot(writer, path, amr, name, time, steps, particles, format, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path, name
        type(ambar_amr), intent(in) :: amr
        real(real64), intent(in) :: time
        integer(int64), intent(in) :: steps(:)
        type(ambar_particles), intent(in), optional :: particles(:)
        character(*), intent(in), optional :: format
        integer, intent(out), optional :: ierr
        type(c_run) :: run
        character(:, kind=c_char), allocatable, target :: own, kind
        integer(c_int64_t), allocatable, target :: numbers(:)
        type(c_ptr), allocatable, target :: species(:)
        integer :: n
        if (.not. allocated(amr%first_box)) then
            call refused_for(writer, "expected a hierarchy from ambar_amr_define, found none", ierr)
            return
        end if
        if (size(steps) /= size(amr%first_box) - 1) then
            call refused_for(writer, "expected a number of steps for each level, found another number", ierr)
            return
        end if
        own = trim(name) // c_null_char
        kind = "HyperCLaw-V1.1" // c_null_char
        if (present(format)) kind = trim(format) // c_null_char
        numbers = steps
        n = 0
        if (present(particles)) n = size(particles)
        allocate (species(n))
        if (n > 0) species = particles%handle
        run%size = c_sizeof(run)
        run%name = c_loc(own)
        run%format = c_loc(kind)
        run%time = time
        run%coordinates = 0
        run%steps = c_loc(numbers)
        run%species_count = n
        run%species = c_null_ptr
        if (n > 0) run%species = c_loc(species)
        call concluded(c_amr_snapshot(writer%handle, trim(path) // c_null_char, amr%handle, run), ierr)
    end subroutine

    !> Ends a hierarchy, and releases it. If values of this rank are missing, this fails, and so does the commit.
    subroutine ambar_amr_end(amr, writer, ierr)
        type(ambar_amr), intent(inout) :: amr
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        type(c_ptr) :: handle
        handle = amr%handle
        amr%handle = c_null_ptr
        call concluded(c_amr_end(handle, writer%handle), ierr)
    end subroutine

    !> Defines a group of kind particles at `path`. Rank i has counts(i + 1) particles with `columns`, which include position_x,
    !! position_y, ... The particles are in a cube with the lower corner `lower`, one number for each dimension, and the side
    !! `side`. attributes are a JSON object. `rank` is the number of this rank. All ranks call it with otherwise equal arguments.
    !! End the particles with ambar_particles_end.
    subroutine ambar_particles_define(writer, path, counts, columns, lower, side, particles, rank, profile, attributes, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: path
        integer(int64), intent(in) :: counts(:)
        type(ambar_field), intent(in) :: columns(:)
        real(real64), intent(in) :: lower(:), side
        type(ambar_particles), intent(out) :: particles
        integer, intent(in), optional :: rank, profile
        character(*), intent(in), optional :: attributes
        integer, intent(out), optional :: ierr
        type(c_field) :: c_fields(size(columns))
        character(:, kind=c_char), allocatable, target :: names
        real(c_double), target :: ranges(2, size(columns))
        real(c_double) :: corner(3)
        character(:), allocatable :: json
        integer :: own, with
        own = 0
        if (present(rank)) own = rank
        if (size(lower) < 1 .or. size(lower) > 3 .or. own < 0 .or. own >= size(counts)) then
            call refused_for(writer, "expected 1 to 3 numbers in lower, and a count for each rank, found others", ierr)
            return
        end if
        corner = 0
        corner(:size(lower)) = lower
        json = "{}"
        if (present(attributes)) json = trim(attributes)
        with = AMBAR_BALANCED
        if (present(profile)) with = profile
        particles%types = columns%type
        particles%own = counts(own + 1)
        call describe(columns, names, ranges, c_fields)
        call concluded(c_particles_define(writer%handle, trim(path) // c_null_char, counts, size(columns, kind=c_int32_t), &
                                          c_fields, with, size(lower, kind=c_int32_t), corner, side, json // c_null_char, &
                                          particles%handle), ierr)
    end subroutine

    !> Ends particles, and releases them. If columns are missing, this fails, and so does the commit.
    subroutine ambar_particles_end(particles, writer, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(out), optional :: ierr
        type(c_ptr) :: handle
        handle = particles%handle
        particles%handle = c_null_ptr
        call concluded(c_particles_end(handle, writer%handle), ierr)
    end subroutine

    ! Describes fields to C. The strings are in `names`, each with a terminating zero.
    subroutine describe(fields, names, ranges, out)
        type(ambar_field), intent(in) :: fields(:)
        character(:, kind=c_char), allocatable, target, intent(out) :: names
        real(c_double), target, intent(inout) :: ranges(:, :)
        type(c_field), intent(out) :: out(:)
        integer :: n, at, next
        names = ""
        do n = 1, size(fields)
            if (allocated(fields(n)%name)) names = names // trim(fields(n)%name)
            names = names // c_null_char
            if (allocated(fields(n)%error_bound)) names = names // trim(fields(n)%error_bound) // c_null_char
        end do
        at = 1
        do n = 1, size(fields)
            out(n)%size = c_sizeof(out(n))
            out(n)%type = fields(n)%type
            out(n)%error_bound = c_null_ptr
            out(n)%value_range = c_null_ptr
            out(n)%codecs = c_null_ptr
            out(n)%name = c_loc(names(at:at))
            next = at + index(names(at:), c_null_char)
            at = next
            if (allocated(fields(n)%error_bound)) then
                out(n)%error_bound = c_loc(names(at:at))
                at = at + index(names(at:), c_null_char)
            end if
            if (allocated(fields(n)%value_range)) then
                if (size(fields(n)%value_range) == 2) then
                    ranges(:, n) = fields(n)%value_range
                    out(n)%value_range = c_loc(ranges(1, n))
                end if
            end if
        end do
    end subroutine

    ! Refuses a call, so that nothing is committed without its values.
    subroutine refused_for(writer, why, ierr)
        type(ambar_writer), intent(inout) :: writer
        character(*), intent(in) :: why
        integer, intent(out), optional :: ierr
        integer :: status
        status = c_write(writer%handle, -1_c_int32_t, [0_c_int64_t], [0_c_int64_t], c_null_ptr)
        call refused(merge(AMBAR_INVALID, status, status == AMBAR_OK), why, ierr)
    end subroutine

    subroutine put_box(amr, writer, level, box, field, type, first, lengths, bytes, ierr)
        type(ambar_amr), intent(inout) :: amr
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: level, box, field, type, bytes
        type(c_ptr), intent(in) :: first
        integer(int64), intent(in) :: lengths(:)
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: strides(3)
        logical :: known
        known = allocated(amr%first_box)
        if (known) known = level >= 1 .and. level < size(amr%first_box) .and. field >= 1 .and. field <= size(amr%types)
        if (known) known = box >= 1 .and. box <= amr%first_box(level + 1) - amr%first_box(level)
        if (.not. known) then
            call refused_for(writer, "expected the number of a level, a box and a field, found one that does not exist", ierr)
            return
        end if
        known = amr%types(field) == type .and. size(lengths) == amr%ndim
        if (known) known = all(lengths == amr%cells(:amr%ndim, amr%first_box(level) + box))
        if (.not. known) then
            call refused_for(writer, "expected values of the field's type and the box's shape, found another type or shape", ierr)
            return
        end if
        strides = bytes
        if (amr%ndim > 1) strides(2:) = strides(1) * lengths(1)
        if (amr%ndim > 2) strides(3) = strides(2) * lengths(2)
        call concluded(c_amr_write(amr%handle, writer%handle, level - 1, box - 1, field - 1, first, strides), ierr)
    end subroutine

    subroutine put_column(particles, writer, column, type, first, count, bytes, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: column, type, bytes
        type(c_ptr), intent(in) :: first
        integer(int64), intent(in) :: count
        integer, intent(out), optional :: ierr
        logical :: known
        known = allocated(particles%types) .and. count == particles%own
        if (known) known = column >= 1 .and. column <= size(particles%types)
        if (known) known = particles%types(column) == type
        if (.not. known) then
            call refused_for(writer, "expected a value of the column's type for each particle, found others", ierr)
            return
        end if
        call concluded(c_particles_write(particles%handle, writer%handle, column - 1, first, int(bytes, c_int64_t)), ierr)
    end subroutine

    subroutine amr_write_real32(amr, writer, level, box, field, values, ierr)
        type(ambar_amr), intent(inout) :: amr
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: level, box, field
        real(real32), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put_box(amr, writer, level, box, field, AMBAR_FLOAT32, c_loc(values), shape(values, int64), &
                     storage_size(values) / 8, ierr)
    end subroutine

    subroutine amr_write_real64(amr, writer, level, box, field, values, ierr)
        type(ambar_amr), intent(inout) :: amr
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: level, box, field
        real(real64), intent(in), contiguous, target :: values(..)
        integer, intent(out), optional :: ierr
        call put_box(amr, writer, level, box, field, AMBAR_FLOAT64, c_loc(values), shape(values, int64), &
                     storage_size(values) / 8, ierr)
    end subroutine

    subroutine particles_write_int32(particles, writer, column, values, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: column
        integer(int32), intent(in), contiguous, target :: values(:)
        integer, intent(out), optional :: ierr
        call put_column(particles, writer, column, AMBAR_INT32, c_loc(values), size(values, kind=int64), &
                        storage_size(values) / 8, ierr)
    end subroutine

    subroutine particles_write_int64(particles, writer, column, values, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: column
        integer(int64), intent(in), contiguous, target :: values(:)
        integer, intent(out), optional :: ierr
        call put_column(particles, writer, column, AMBAR_INT64, c_loc(values), size(values, kind=int64), &
                        storage_size(values) / 8, ierr)
    end subroutine

    subroutine particles_write_real32(particles, writer, column, values, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: column
        real(real32), intent(in), contiguous, target :: values(:)
        integer, intent(out), optional :: ierr
        call put_column(particles, writer, column, AMBAR_FLOAT32, c_loc(values), size(values, kind=int64), &
                        storage_size(values) / 8, ierr)
    end subroutine

    subroutine particles_write_real64(particles, writer, column, values, ierr)
        type(ambar_particles), intent(inout) :: particles
        type(ambar_writer), intent(inout) :: writer
        integer, intent(in) :: column
        real(real64), intent(in), contiguous, target :: values(:)
        integer, intent(out), optional :: ierr
        call put_column(particles, writer, column, AMBAR_FLOAT64, c_loc(values), size(values, kind=int64), &
                        storage_size(values) / 8, ierr)
    end subroutine
end module
