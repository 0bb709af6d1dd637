program slow
  integer, volatile :: turns
  do
    turns = 1
  end do
end program
