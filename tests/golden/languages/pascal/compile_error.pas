begin
  undeclared := 1;
end.
