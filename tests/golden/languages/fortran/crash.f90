program crash
  error stop 3
end program
