var turns: int64;
begin
  turns := 0;
  while true do turns := turns + 1;
end.
